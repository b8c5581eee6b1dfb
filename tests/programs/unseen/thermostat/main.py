"""Switch points of a thermostat: comfort against the number of hours the burner is on."""
import numpy as np
import warp as wp

HOURS = 36


@wp.kernel
def burn(room: wp.array(dtype=float), setpoint: wp.array(dtype=float), outside: wp.array(dtype=float), h: int):
    on = float(0.0)
    if room[h] < setpoint[h / 12]:
        on = 1.0
    room[h + 1] = room[h] + 0.35 * on - 0.1 * (room[h] - outside[h])


@wp.kernel
def comfort(room: wp.array(dtype=float), cost: wp.array(dtype=float)):
    h = wp.tid()
    d = room[h] - 2.0
    wp.atomic_add(cost, 0, d * d)


outside = wp.array(np.sin(np.arange(HOURS) / 24.0 * 2.0 * np.pi) - 0.37, dtype=float)
switch = wp.array([1.613, 1.887, 1.742], dtype=float, requires_grad=True)

for day in range(6):
    room = wp.full(HOURS + 1, 1.0, dtype=float, requires_grad=True)
    cost = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        for h in range(HOURS):
            wp.launch(burn, 1, inputs=[room, switch, outside, h])
        wp.launch(comfort, HOURS, inputs=[room, cost])
    tape.backward(cost)
    print(f"day {day}: discomfort {cost.numpy()[0]:.4f}  dswitch {switch.grad.numpy()}")
    switch.assign(switch.numpy() - 0.1 * switch.grad.numpy())
    tape.zero()

"""Relay timing of a level crossing: close late, but never too late."""
import warp as wp

TRAINS = 4


@wp.kernel
def wait(switch: wp.array(dtype=float), speed: wp.array(dtype=float), cost: wp.array(dtype=float)):
    t = wp.tid()
    margin = speed[t] * switch[0] - switch[1]
    wp.atomic_add(cost, 0, wp.exp(-4.0 * margin) + 0.1 * switch[0] * switch[0])


speed = wp.array([0.8, 1.0, 1.3, 1.7], dtype=float)
switch = wp.array([0.5, 0.1], dtype=float, requires_grad=True)
for k in range(10):
    cost = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(wait, TRAINS, inputs=[switch, speed, cost])
    tape.backward(cost)
    switch.assign(switch.numpy() - 0.05 * switch.grad.numpy())
    tape.zero()
    print(f"{k}: cost {cost.numpy()[0]:.5f}")

"""Find how full five basins were before the gates between them were opened, from the water levels a while later."""
import numpy as np
import warp as wp

BASINS = 5
GATES = 4
STEPS = 6
DT = 0.2
ITERATIONS = 4
LEARNING_RATE = 0.3


@wp.kernel
def flow(level: wp.array(dtype=float), opening: wp.array(dtype=float), through: wp.array(dtype=float)):
    g = wp.tid()
    head = level[g] - level[g + 1]
    through[g] = opening[g] * wp.sign(head) * wp.sqrt(wp.abs(head))  # Torricelli


@wp.kernel
def fill(level: wp.array(dtype=float), through: wp.array(dtype=float), level_out: wp.array(dtype=float)):
    b = wp.tid()
    gain = float(0.0)
    if b > 0:
        gain += through[b - 1]
    if b < GATES:
        gain -= through[b]
    level_out[b] = level[b] + DT * gain


@wp.kernel
def misfit(level: wp.array(dtype=float), gauge: wp.array(dtype=float), loss: wp.array(dtype=float)):
    b = wp.tid()
    d = level[b] - gauge[b]
    wp.atomic_add(loss, 0, d * d)


def vector(n):
    return wp.zeros(n, dtype=float, requires_grad=True)


def open_gates(level):
    for _ in range(STEPS):
        through, after = vector(GATES), vector(BASINS)
        wp.launch(flow, GATES, inputs=[level, opening], outputs=[through])
        wp.launch(fill, BASINS, inputs=[level, through], outputs=[after])
        level = after
    return level


opening = wp.array([0.4, 0.5, 0.3, 0.6], dtype=float)
gauge = wp.array(open_gates(wp.array([2.0, 1.9, 1.5, 1.0, 0.6], dtype=float)).numpy(), dtype=float)
start = wp.full(BASINS, 1.2, dtype=float, requires_grad=True)

for it in range(ITERATIONS):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        level = open_gates(start)
        wp.launch(misfit, BASINS, inputs=[level, gauge], outputs=[loss])
    tape.backward(loss)

    slope = start.grad.numpy().copy()
    print(f"iteration {it}  loss {loss.numpy()[0]:.6f}  start {np.round(start.numpy(), 4)}  gradient {slope}")
    tape.zero()
    start.assign(start.numpy() - LEARNING_RATE * slope)

"""Choose the leaf area of a greenhouse's shelves, for the light that falls on each through the roof."""
import numpy as np
import warp as wp

SHELVES = 5
ITERATIONS = 4
LEARNING_RATE = 0.4


@wp.kernel(enable_backward=False)
def through_roof(hour: float, light: wp.array(dtype=float)):
    s = wp.tid()
    sun = wp.max(wp.sin(3.14159 * (hour - 6.0) / 12.0), 0.0)
    light[s] = sun * wp.exp(-0.2 * float(s))


@wp.kernel
def growth(leaves: wp.array(dtype=float), light: wp.array(dtype=float), loss: wp.array(dtype=float)):
    s = wp.tid()
    sugar = leaves[s] * light[s] / (0.2 + light[s])
    upkeep = 0.3 * leaves[s] * leaves[s]
    wp.atomic_add(loss, 0, upkeep - sugar)


leaves = wp.array([0.9, 0.8, 0.7, 0.6, 0.5], dtype=float, requires_grad=True)
light = wp.zeros(SHELVES, dtype=float)

for it in range(ITERATIONS):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(through_roof, SHELVES, inputs=[13.0], outputs=[light])
        wp.launch(growth, SHELVES, inputs=[leaves, light], outputs=[loss])
    tape.backward(loss)

    change = leaves.grad.numpy().copy()
    print(f"iteration {it}  loss {loss.numpy()[0]:.5f}  leaves {np.round(leaves.numpy(), 3)}  gradient {change}")
    tape.zero()
    leaves.assign(leaves.numpy() - LEARNING_RATE * change)

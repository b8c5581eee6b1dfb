"""Thin a tree's crown so that every storey of leaves gets enough light, without cutting too much."""
import numpy as np
import warp as wp

STOREYS = 5
ITERATIONS = 4
LEARNING_RATE = 0.4


@wp.kernel(enable_backward=False)
def shade(leaves: wp.array(dtype=float), light: wp.array(dtype=float)):
    s = wp.tid()
    above = float(0.0)
    for k in range(STOREYS):
        if k < s:
            above += leaves[k]
    light[s] = wp.exp(-0.6 * above)


@wp.kernel
def growth(leaves: wp.array(dtype=float), light: wp.array(dtype=float), loss: wp.array(dtype=float)):
    s = wp.tid()
    sugar = leaves[s] * light[s] / (0.2 + light[s])
    upkeep = 0.3 * leaves[s] * leaves[s]
    wp.atomic_add(loss, 0, upkeep - sugar)


leaves = wp.array([0.9, 0.8, 0.7, 0.6, 0.5], dtype=float, requires_grad=True)
light = wp.zeros(STOREYS, dtype=float, requires_grad=True)

for it in range(ITERATIONS):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(shade, STOREYS, inputs=[leaves], outputs=[light])
        wp.launch(growth, STOREYS, inputs=[leaves, light], outputs=[loss])
    tape.backward(loss)

    change = leaves.grad.numpy().copy()
    print(f"iteration {it}  loss {loss.numpy()[0]:.5f}  leaves {np.round(leaves.numpy(), 3)}  gradient {change}")
    tape.zero()
    leaves.assign(leaves.numpy() - LEARNING_RATE * change)

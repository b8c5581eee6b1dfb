"""Bees keep a brood warm: how should they spread over the comb?"""
import numpy as np
import warp as wp

SIDE = 5
BEES = 6


@wp.kernel
def heat_comb(bee: wp.array(dtype=wp.vec2), comb: wp.array2d(dtype=float)):
    i, j, b = wp.tid()
    d = bee[b] - wp.vec2(float(i), float(j))
    wp.atomic_add(comb, i, j, wp.exp(-0.3 * wp.dot(d, d)))


@wp.kernel
def chill(comb: wp.array2d(dtype=float), loss: wp.array(dtype=float)):
    i, j = wp.tid()
    d = comb[i, j] - 1.0
    wp.atomic_add(loss, 0, d * d)


@wp.kernel
def walk(bee: wp.array(dtype=wp.vec2), way: wp.array(dtype=wp.vec2), stride: float):
    b = wp.tid()
    bee[b] = bee[b] - stride * way[b]


rng = np.random.default_rng(5)
bee = wp.array(rng.uniform(0, SIDE - 1, (BEES, 2)), dtype=wp.vec2, requires_grad=True)

for minute in range(12):
    comb = wp.zeros((SIDE, SIDE), dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(heat_comb, (SIDE, SIDE, BEES), inputs=[bee], outputs=[comb])
        wp.launch(chill, (SIDE, SIDE), inputs=[comb], outputs=[loss])
    tape.backward(loss)
    tape.zero()
    wp.launch(walk, BEES, inputs=[bee, bee.grad, 0.05])
    print(f"minute {minute}: chill {loss.numpy()[0]:.4f}")

"""Grow a sunflower head: fit seed radii and the divergence angle of successive seeds."""
import numpy as np
import warp as wp

ROWS, COLS = 3, 4
SEEDS = ROWS * COLS


@wp.kernel
def place(radius: wp.array(dtype=float), angle: wp.array(dtype=float), seed: wp.array(dtype=wp.vec2)):
    s = wp.tid()
    a = angle[0] * float(s)
    seed[s] = wp.vec2(radius[s] * wp.cos(a), radius[s] * wp.sin(a))


@wp.kernel
def crowding(seed: wp.array(dtype=wp.vec2), cost: wp.array(dtype=float)):
    i, j = wp.tid()
    if i < j:
        d = seed[i] - seed[j]
        wp.atomic_add(cost, 0, 0.05 / (0.05 + wp.dot(d, d)))


@wp.kernel
def compactness(table: wp.array2d(dtype=float), cost: wp.array(dtype=float)):
    r, c = wp.tid()
    wp.atomic_add(cost, 0, 0.03 * table[r, c] * table[r, c])


table = wp.array(0.3 + 0.08 * np.arange(SEEDS).reshape(ROWS, COLS), dtype=float)
radius = table.flatten()
table.requires_grad = True
angle = wp.array([2.2], dtype=float, requires_grad=True)
seed = wp.zeros(SEEDS, dtype=wp.vec2, requires_grad=True)
cost = wp.zeros(1, dtype=float, requires_grad=True)

for generation in range(12):
    cost.zero_()
    tape = wp.Tape()
    with tape:
        wp.launch(place, SEEDS, inputs=[radius, angle], outputs=[seed])
        wp.launch(crowding, (SEEDS, SEEDS), inputs=[seed], outputs=[cost])
        wp.launch(compactness, (ROWS, COLS), inputs=[table], outputs=[cost])
    tape.backward(cost)
    d_table = table.grad.numpy().copy()
    d_angle = angle.grad.numpy().copy()
    print(f"generation {generation}: fitness cost {cost.numpy()[0]:.5f}")
    table.assign(table.numpy() - 0.2 * d_table)
    angle.assign(angle.numpy() - 0.02 * d_angle)
    tape.zero()

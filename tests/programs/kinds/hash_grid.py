"""Beads that push each other away, neighbours by a hash grid; the start positions are fitted."""
import numpy as np
import warp as wp

R = 0.8


@wp.kernel
def push(grid: wp.uint64, p: wp.array(dtype=wp.vec3), f: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    x = p[i]
    total = wp.vec3()
    for j in wp.hash_grid_query(grid, x, R):
        if j != i:
            d = x - p[j]
            l = wp.length(d)
            if l < R:
                total += d * (R - l) * (R - l)
    f[i] = total


@wp.kernel
def move(p: wp.array(dtype=wp.vec3), f: wp.array(dtype=wp.vec3), q: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    q[i] = p[i] + 0.5 * f[i]


@wp.kernel
def spread(p: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, wp.length_sq(p[i] - wp.vec3(0.5, 0.5, 0.5)))


rng = np.random.default_rng(1)
start = wp.array(rng.uniform(0, 1.5, (20, 3)), dtype=wp.vec3, requires_grad=True)
grid = wp.HashGrid(8, 8, 8)
for it in range(3):
    tape = wp.Tape()
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with tape:
        p = start
        for _ in range(4):
            grid.build(p, R)
            f = wp.zeros_like(start)
            q = wp.zeros_like(start)
            wp.launch(push, 20, inputs=[grid.id, p], outputs=[f])
            wp.launch(move, 20, inputs=[p, f], outputs=[q])
            p = q
        wp.launch(spread, 20, inputs=[p], outputs=[loss])
    tape.backward(loss)
    start.assign(start.numpy() - 0.01 * start.grad.numpy())
    tape.zero()
    print(it, loss.numpy()[0])

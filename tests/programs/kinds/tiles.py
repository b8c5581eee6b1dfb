"""A small layer by tiles: weights of a matrix product, tile by tile."""
import numpy as np
import warp as wp

M, N, K = 8, 8, 16


@wp.kernel
def layer(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float), out: wp.array2d(dtype=float)):
    i, j = wp.tid()
    x = wp.tile_load(a, shape=(4, K), offset=(i * 4, 0))
    y = wp.tile_load(b, shape=(K, 4), offset=(0, j * 4))
    z = wp.tile_matmul(x, y)
    wp.tile_store(out, wp.tile_map(wp.sin, z), offset=(i * 4, j * 4))


@wp.kernel
def total(out: wp.array2d(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    t = wp.tile_load(out, shape=(1, N), offset=(i, 0))
    wp.tile_atomic_add(loss, wp.tile_sum(wp.tile_map(wp.mul, t, t)))


rng = np.random.default_rng(3)
a = wp.array(rng.normal(size=(M, K)) * 0.3, dtype=float)
b = wp.array(rng.normal(size=(K, N)) * 0.3, dtype=float, requires_grad=True)
for it in range(3):
    out = wp.zeros((M, N), dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch_tiled(layer, dim=(2, 2), inputs=[a, b], outputs=[out], block_dim=32)
        wp.launch_tiled(total, dim=(M,), inputs=[out], outputs=[loss], block_dim=32)
    tape.backward(loss)
    b.assign(b.numpy() - 0.1 * b.grad.numpy())
    tape.zero()
    print(it, loss.numpy()[0])

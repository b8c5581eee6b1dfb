"""Regression of isotope ratios in an ice core: a low-rank map from 16 depth bands to 8 climate proxies, with tiles."""
import argparse
import math

import numpy as np
import warp as wp

ROWS, BANDS, RANK, PROXIES = 32, 16, 4, 8
BLOCK = wp.constant(16)


@wp.kernel
def predict(
    x: wp.array2d(dtype=float),
    left: wp.array2d(dtype=float),
    right: wp.array2d(dtype=float),
    out: wp.array2d(dtype=float),
):
    b = wp.tid()
    rows = wp.tile_load(x, shape=(16, 16), offset=(b * BLOCK, 0))
    u = wp.tile_load(left, shape=(16, 4))
    v = wp.tile_load(right, shape=(4, 8))
    hidden = wp.tile_matmul(rows, u)
    wp.tile_store(out, wp.tile_matmul(wp.tile_map(wp.sin, hidden), v), offset=(b * BLOCK, 0))


@wp.kernel
def squares(out: wp.array2d(dtype=float), y: wp.array2d(dtype=float), total: wp.array(dtype=float)):
    i, j = wp.tid()
    d = out[i, j] - y[i, j]
    wp.atomic_add(total, 0, d * d)


@wp.kernel
def ridge(a: wp.array2d(dtype=float), weight: float, total: wp.array(dtype=float)):
    i, j = wp.tid()
    wp.atomic_add(total, 0, weight * a[i, j] * a[i, j])


@wp.kernel
def summarize(total: wp.array(dtype=float), out: wp.array2d(dtype=float), y: wp.array2d(dtype=float), stats: wp.array(dtype=float)):
    """Root mean square, largest error and share of rows with the right sign."""
    n = out.shape[0] * out.shape[1]
    stats[0] = wp.sqrt(total[0] / float(n))
    worst = float(0.0)
    hits = float(0.0)
    for i in range(out.shape[0]):
        worst = wp.max(worst, wp.abs(out[i, 0] - y[i, 0]))
        if out[i, 0] * y[i, 0] > 0.0:
            hits += 1.0
    stats[1] = worst
    stats[2] = hits / float(out.shape[0])


def observations(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(ROWS, BANDS))
    y = np.sin(x @ rng.normal(size=(BANDS, 3)) * 0.3) @ rng.normal(size=(3, PROXIES))
    return [wp.array(a.astype(np.float32), dtype=float) for a in (x, y + 0.05 * rng.normal(size=y.shape))]


def evaluate(factors, x, y, weight):
    left, right = (wp.array(f.astype(np.float32), dtype=float, requires_grad=True) for f in factors)
    out = wp.zeros((ROWS, PROXIES), dtype=float, requires_grad=True)
    total = wp.zeros(1, dtype=float, requires_grad=True)
    stats = wp.zeros(3, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch_tiled(predict, dim=[ROWS // 16], inputs=[x, left, right], outputs=[out], block_dim=32)
        wp.launch(squares, dim=out.shape, inputs=[out, y], outputs=[total])
        wp.launch(ridge, dim=left.shape, inputs=[left, weight], outputs=[total])
        wp.launch(ridge, dim=right.shape, inputs=[right, weight], outputs=[total])
        wp.launch(summarize, dim=1, inputs=[total, out, y], outputs=[stats])
    tape.backward(total)
    return float(total.numpy()[0]), [left.grad.numpy(), right.grad.numpy()], stats.numpy()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--rate", type=float, default=0.05)
    ap.add_argument("--ridge", type=float, default=0.01)
    args = ap.parse_args()
    x, y = observations(5)
    rng = np.random.default_rng(31)
    factors = [0.2 * rng.normal(size=(BANDS, RANK)), 0.5 * rng.normal(size=(RANK, PROXIES))]
    m = [np.zeros_like(f) for f in factors]
    v = [np.zeros_like(f) for f in factors]
    for it in range(1, 15):
        total, grads, stats = evaluate(factors, x, y, args.ridge)
        for k, g in enumerate(grads):
            m[k] = 0.9 * m[k] + 0.1 * g
            v[k] = 0.99 * v[k] + 0.01 * g**2
            rate = args.rate * math.sqrt(1 - 0.99**it) / (1 - 0.9**it)
            factors[k] = factors[k] - rate * m[k] / (np.sqrt(v[k]) + 1e-8)
        print(f"{it:2d} total {total:.4f} rms {stats[0]:.4f} worst {stats[1]:.4f} right sign {stats[2]:.2f}")


if __name__ == "__main__":
    main()

"""Place power on a chip so that the temperature map is even. The steady map comes from a fixed
number of Jacobi sweeps; the number is part of the model."""

import argparse
import logging

import numpy as np
import warp as wp

log = logging.getLogger("chip")


@wp.kernel
def jacobi(t: wp.array2d(dtype=float), q: wp.array2d(dtype=float), sink: float, out: wp.array2d(dtype=float)):
    i, j = wp.tid()
    n = t.shape[0]
    s = t[wp.max(i - 1, 0), j] + t[wp.min(i + 1, n - 1), j] + t[i, wp.max(j - 1, 0)] + t[i, wp.min(j + 1, n - 1)]
    cool = sink * (1.0 + 0.3 * t[i, j])
    out[i, j] = (s + q[i, j]) / (4.0 + cool)


@wp.kernel
def spread(logit: wp.array2d(dtype=float), peak: float, q: wp.array2d(dtype=float)):
    i, j = wp.tid()
    q[i, j] = peak / (1.0 + wp.exp(-logit[i, j]))


@wp.kernel
def unevenness(t: wp.array2d(dtype=float), goal: float, loss: wp.array(dtype=float)):
    i, j = wp.tid()
    d = t[i, j] - goal
    wp.atomic_add(loss, 0, d * d / float(t.shape[0] * t.shape[0]))


@wp.kernel
def adam(
    p: wp.array2d(dtype=float), g: wp.array2d(dtype=float), m: wp.array2d(dtype=float), v: wp.array2d(dtype=float), t: float, lr: float
):
    i, j = wp.tid()
    m[i, j] = 0.8 * m[i, j] + 0.2 * g[i, j]
    v[i, j] = 0.95 * v[i, j] + 0.05 * g[i, j] * g[i, j]
    mh = m[i, j] / (1.0 - wp.pow(0.8, t))
    vh = v[i, j] / (1.0 - wp.pow(0.95, t))
    p[i, j] -= lr * mh / (wp.sqrt(vh) + 1.0e-8)
    g[i, j] = 0.0


class Chip:
    def __init__(self, n, sweeps, lr):
        self.n, self.sweeps, self.lr = n, sweeps, lr
        rng = np.random.default_rng(2)
        self.logit = wp.array(rng.normal(size=(n, n)).astype(np.float32), dtype=float, requires_grad=True)
        self.m = wp.zeros((n, n), dtype=float)
        self.v = wp.zeros((n, n), dtype=float)
        self.maps = [wp.zeros((n, n), dtype=float, requires_grad=True) for _ in range(sweeps + 1)]
        self.q = wp.zeros((n, n), dtype=float, requires_grad=True)
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
        self.tape = None
        self.count = 0

    def record(self):
        shape = (self.n, self.n)
        tape = wp.Tape()
        with tape:
            wp.launch(spread, dim=shape, inputs=[self.logit, 1.2], outputs=[self.q])
            for a, b in zip(self.maps[:-1], self.maps[1:]):
                wp.launch(jacobi, dim=shape, inputs=[a, self.q, 0.5], outputs=[b])
            wp.launch(unevenness, dim=shape, inputs=[self.maps[-1], 1.0], outputs=[self.loss])
        return tape

    def iterate(self):
        self.loss.zero_()
        tape = self.record()
        tape.backward(self.loss)
        value = float(self.loss.numpy()[0])
        self.update()
        for a in [self.q, self.loss] + self.maps:
            a.grad.zero_()
        return value

    def update(self):
        self.count += 1
        wp.launch(adam, dim=(self.n, self.n), inputs=[self.logit, self.logit.grad, self.m, self.v, float(self.count), self.lr])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--size", type=int, default=16)
    ap.add_argument("--sweeps", type=int, default=20)
    ap.add_argument("--lr", type=float, default=0.15)
    cfg = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")
    chip = Chip(cfg.size, cfg.sweeps, cfg.lr)
    for it in range(9):
        log.info("%d unevenness %.6f", it, chip.iterate())


if __name__ == "__main__":
    main()

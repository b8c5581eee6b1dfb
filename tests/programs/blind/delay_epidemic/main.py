"""Estimate regional transmission rates from reported cumulative cases."""

import argparse
import logging

import numpy as np
import warp as wp

from epidemic import Epidemic, compare

log = logging.getLogger("epi")


class HandAdam:
    def __init__(self, size, lr, b1=0.8, b2=0.95):
        self.lr, self.b1, self.b2, self.k = lr, b1, b2, 0
        self.m = np.zeros(size)
        self.v = np.zeros(size)

    def step(self, p, g):
        self.k += 1
        self.m += (1 - self.b1) * (g - self.m)
        self.v += (1 - self.b2) * (g * g - self.v)
        return p - self.lr * (self.m / (1 - self.b1**self.k)) / (np.sqrt(self.v / (1 - self.b2**self.k)) + 1e-9)


class Estimate:
    def __init__(self, days, lr):
        self.model = Epidemic(days)
        truth = wp.array([0.45, 0.30, 0.5, 0.38, 0.28, 0.42], dtype=float)
        rows = []
        self.model.run(truth, lambda t, s: rows.append(s.numpy().sum(axis=1)))
        self.seen = wp.array(np.array(rows, dtype=np.float32), dtype=float)
        self.beta = wp.array([0.35] * 6, dtype=float, requires_grad=True)
        self.opt = HandAdam(6, lr)
        self.scale = 100.0 / (6 * days)

    def iterate(self):
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)

        def score(t, state):
            wp.launch(compare, dim=6, inputs=[state, self.seen, t, self.scale], outputs=[self.loss])

        tape = wp.Tape()
        with tape:
            self.model.run(self.beta, score)
        tape.backward(self.loss)
        self.update(self.beta.grad.numpy().astype(np.float64))
        tape.zero()
        return float(self.loss.numpy()[0])

    def update(self, g):
        self.beta.assign(self.opt.step(self.beta.numpy(), g).astype(np.float32))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--days", type=int, default=40)
    ap.add_argument("--lr", type=float, default=0.015)
    ap.add_argument("--iterations", type=int, default=9)
    cfg = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    est = Estimate(cfg.days, cfg.lr)
    for it in range(cfg.iterations):
        value = est.iterate()
        log.info("%d misfit %.5f beta %s", it, value, np.round(est.beta.numpy(), 4))


if __name__ == "__main__":
    main()

"""Calibrate member stiffnesses with strain gauges of different quality (weighted least squares)."""

import argparse
from dataclasses import dataclass

import numpy as np
import warp as wp
from warp.optim import SGD

from truss import Truss, strain_residual


@dataclass
class Gauges:
    joints: tuple = (1, 3, 5, 7, 9)
    measured: tuple = (0.30, 0.42, 0.20, 0.26, 0.22)
    sigma: tuple = (1.0, 0.4, 1.0, 0.5, 2.0)


class WeightedFit:
    def __init__(self, truss, gauges, lr):
        self.truss = truss
        self.count = len(gauges.joints)
        self.idx = wp.array(gauges.joints, dtype=int)
        self.measured = wp.array(gauges.measured, dtype=float)
        self.weights = 1.0 / np.asarray(gauges.sigma) ** 2
        self.k = wp.array(np.full(truss.joints, 4.0), dtype=float, requires_grad=True)
        self.opt = SGD([self.k], lr=lr)

    def chi2(self, r):
        return float(np.mean(self.weights * r * r))

    def iteration(self):
        tape = wp.Tape()
        with tape:
            u = self.truss.solve(self.k)
            res = wp.zeros(self.count, dtype=float, requires_grad=True)
            wp.launch(strain_residual, dim=self.count, inputs=[u, self.idx, self.measured], outputs=[res])
        r = res.numpy().copy()
        self.value = self.chi2(r)
        seed = wp.array(2.0 * r / self.count, dtype=float)
        tape.backward(grads={res: seed})
        self.step()
        tape.zero()
        return self.value

    def step(self):
        self.opt.step([self.k.grad])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--iterations", type=int, default=8)
    ap.add_argument("--lr", type=float, default=8.0)
    cfg = ap.parse_args()
    fit = WeightedFit(Truss(), Gauges(), cfg.lr)
    for it in range(cfg.iterations):
        print(f"{it} chi2 {fit.iteration():.6f} k {np.round(fit.k.numpy(), 3)}")


if __name__ == "__main__":
    main()

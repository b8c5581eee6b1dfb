"""Fit patient-specific growth, motility and oxygen uptake of a tumour to two follow-up scans."""
import argparse
import math
from dataclasses import dataclass

import numpy as np
import warp as wp

from model import Rates
from rollout import Rollout


@dataclass
class Config:
    size: int = 20
    steps: int = 60
    stride: int = 12
    dt: float = 0.1
    prior_growth: float = math.log(0.6)
    prior_motility: float = math.log(0.08)
    prior_weight: float = 1.0e-4
    iterations: int = 30
    rate: float = 2.0


TRUE = np.log([0.9, 0.5, 0.2, 0.15, 0.05, 0.02, 0.8])


def anatomy(n):
    x, y = np.meshgrid(np.linspace(-1, 1, n), np.linspace(-1, 1, n), indexing="ij")
    tissue = np.where(x + 0.3 * y > 0.25, 1, 0) + np.where(np.hypot(x + 0.6, y - 0.6) < 0.35, 2, 0)
    cells = 0.7 * np.exp(-((x + 0.15) ** 2 + (y + 0.1) ** 2) / 0.06)
    return np.minimum(tissue, 2).astype(np.int32), cells, np.ones_like(x)


class Fit:
    def __init__(self, cfg):
        self.cfg = cfg
        self.rates = Rates()
        self.rates.log_growth = wp.zeros(3, dtype=float, requires_grad=True)
        self.rates.log_motility = wp.zeros(3, dtype=float, requires_grad=True)
        self.rates.log_uptake = wp.zeros(1, dtype=float, requires_grad=True)
        self.rollout = Rollout(cfg, *anatomy(cfg.size), self.rates)
        self._simulate_scans()

    def set(self, theta):
        theta = np.asarray(theta, np.float32)
        self.rates.log_growth.assign(theta[:3])
        self.rates.log_motility.assign(theta[3:6])
        self.rates.log_uptake.assign(theta[6:])

    def _simulate_scans(self):
        self.set(TRUE)
        rng = np.random.default_rng(77)
        ro = self.rollout
        ro.pair.start(*ro.initial)
        for step in range(1, self.cfg.steps + 1):
            ro.pair.step(ro.tissue, self.rates, self.cfg.dt)
            if step in (self.cfg.steps // 2, self.cfg.steps):
                scan = ro.pair.cells.numpy() + rng.normal(0.0, 0.02, ro.shape)
                ro.scans[step] = wp.array(scan, dtype=float)

    def objective(self, theta):
        self.set(theta)
        return self.rollout.forward()

    def gradient(self, theta):
        self.set(theta)
        value = self.rollout.reverse()
        r = self.rates
        g = np.concatenate([r.log_growth.grad.numpy(), r.log_motility.grad.numpy(), r.log_uptake.grad.numpy()])
        return value, g.astype(float)


if __name__ == "__main__":
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--iterations", type=int, default=Config.iterations)
    args = ap.parse_args()
    cfg = Config(iterations=args.iterations)
    fit = Fit(cfg)
    theta = np.array([cfg.prior_growth] * 3 + [cfg.prior_motility] * 3 + [0.0])
    for it in range(cfg.iterations):
        value, g = fit.gradient(theta)
        if it % 5 == 0:
            print(f"{it:3d} objective {value:.5f} |g| {np.linalg.norm(g):.5f}")
        theta = theta - cfg.rate * g
    print("growth", np.round(np.exp(theta[:3]), 3), "motility", np.round(np.exp(theta[3:6]), 3))

"""Estimate dispersion and discharge speed of three river sections from tracer curves at three stations."""
import argparse
from dataclasses import dataclass

import numpy as np

from reach import Reach


@dataclass
class Config:
    cells: int = 45
    steps: int = 50
    dt: float = 0.04
    release: int = 6
    noise: float = 0.01
    seed: int = 17
    iterations: int = 30
    rate: float = 0.02


TRUE = np.log([0.030, 0.012, 0.045, 0.55, 0.75, 0.60])
GUESS = np.log([0.020, 0.020, 0.020, 0.65, 0.65, 0.65])


def prepare(cfg):
    reach = Reach(cfg)
    reach.survey(TRUE, cfg.noise, cfg.seed)
    return reach


def estimate(cfg):
    reach = prepare(cfg)
    theta = GUESS.copy()
    for it in range(cfg.iterations):
        value, g = reach.gradient(theta)
        if it % 5 == 0:
            print(f"{it:3d} misfit {value:9.5f}  |g| {np.linalg.norm(g):8.4f}  speed {np.round(np.exp(theta[3:]), 3)}")
        theta = theta - cfg.rate * g
    return theta, reach.objective(theta)


if __name__ == "__main__":
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--iterations", type=int, default=Config.iterations)
    ap.add_argument("--rate", type=float, default=Config.rate)
    a = ap.parse_args()
    theta, value = estimate(Config(iterations=a.iterations, rate=a.rate))
    print("misfit", round(value, 5))
    print("estimate", np.round(np.exp(theta), 3))
    print("true    ", np.round(np.exp(TRUE), 3))

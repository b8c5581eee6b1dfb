"""Infer the hydraulic conductivity of an aquifer from gauged heads."""
import argparse

import numpy as np

from grid import Field
from groundwater import Groundwater


def lens(field):
    """A permeable lens crossed by a clay band."""
    x, y = np.meshgrid(np.linspace(0, 1, field.nx), np.linspace(0, 1, field.ny), indexing="ij")
    return 0.9 * np.exp(-(((x - 0.35) / 0.2) ** 2) - ((y - 0.4) / 0.25) ** 2) - 0.8 * np.exp(-(((x - 0.7) / 0.08) ** 2))


def descend(model, x, iterations, report=5):
    rate = 2.0e-3
    best, g = model.value_and_gradient(x)
    for it in range(iterations):
        if it % report == 0:
            print(f"{it:3d} misfit {best:10.4f} |g| {np.linalg.norm(g):10.4f} rate {rate:.2e}")
        trial = x - rate * g
        value, trial_g = model.value_and_gradient(trial)
        if value < best:
            x, best, g = trial, value, trial_g
            rate *= 1.2
        else:
            rate *= 0.4
    return x, best


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    field = Field()
    truth = lens(field)
    model = Groundwater(field)
    model.observe(truth, args.seed)
    x, best = descend(model, np.zeros(model.shape), args.iterations)
    print(f"misfit {best:.4f}; correlation with the true field {np.corrcoef(x.ravel(), truth.ravel())[0, 1]:.3f}")

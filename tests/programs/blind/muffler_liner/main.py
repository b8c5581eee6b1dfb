"""Shape and line a muffler so that the tone reaching the microphone is as weak as possible."""
import argparse

import numpy as np

from config import DuctConfig
from duct import Duct


def initial_design(cfg):
    area = np.zeros(cfg.cells + 1)
    adm = np.zeros(cfg.cells)
    adm[cfg.liner_first : cfg.liner_last] = 2.5
    return area, adm


def project(cfg, area, adm):
    area = np.clip(area, -0.7, 0.9)
    area[0] = area[-1] = 0.0
    adm = np.clip(adm, 0.0, cfg.admittance_max)
    adm[: cfg.liner_first] = 0.0
    adm[cfg.liner_last :] = 0.0
    return area, adm


def optimise(cfg, verbose=True):
    duct = Duct(cfg)
    area, adm = initial_design(cfg)
    history = []
    for it in range(cfg.iterations):
        duct.set_design(area, adm)
        value, g_area, g_adm = duct.gradient()
        history.append(value)
        if verbose and it % 5 == 0:
            print(f"[{it:3d}] objective {value:8.5f}  |g_area| {np.linalg.norm(g_area):.4f}  |g_adm| {np.linalg.norm(g_adm):.4f}")
        area, adm = project(cfg, area - cfg.rate * g_area, adm - cfg.rate * g_adm)
    return area, adm, history


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=DuctConfig.iterations)
    parser.add_argument("--tone", type=float, default=DuctConfig.tone)
    args = parser.parse_args()
    _, adm, history = optimise(DuctConfig(iterations=args.iterations, tone=args.tone))
    print("objective", round(history[0], 5), "->", round(history[-1], 5), " total admittance", round(float(adm.sum()), 3))

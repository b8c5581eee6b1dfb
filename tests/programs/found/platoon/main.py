"""Fit a car-following law to a recorded platoon; the horizon is replayed in segments to save memory."""
import argparse

import numpy as np

from traffic.config import PlatoonConfig
from traffic.fit import DriverFit
from traffic.record import recorded_platoon


def main() -> int:
    p = argparse.ArgumentParser()
    p.add_argument("--iterations", type=int, default=20)
    p.add_argument("--segment", type=int, default=10)
    p.add_argument("--patience", type=int, default=12)
    a = p.parse_args()
    cfg = PlatoonConfig(segment=a.segment)
    fit = DriverFit(cfg, recorded_platoon(cfg))
    best, waited = np.inf, 0
    for it in range(a.iterations):
        cost, law = fit.step()
        if it % 4 == 0:
            print(f"{it:3d} cost {cost:.5f} law {np.round(law, 4)}")
        if cost < best - 1e-7:
            best, waited = cost, 0
        else:
            waited += 1
            if waited > a.patience:
                print("no progress, giving up")
                break
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

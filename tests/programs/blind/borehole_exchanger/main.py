"""Ground conductivity along a borehole from a distributed thermal response test."""
import argparse

import numpy as np

from exchanger import Exchanger
from inversion import Inversion

OPTIONS = {
    "knots": 5,
    "columns": 16,
    "shells": 10,
    "steps": 160,
    "readings": 8,
    "heating_steps": 100,
    "dt": 0.0005,
    "power": 4.0,
    "grout": 0.12,
    "scale": 0.02,
    "rough": 0.02,
}
TRUE = np.log([1.4, 2.2, 2.6, 1.8, 3.0])
START = np.log([1.8, 2.3, 2.0, 2.6, 2.2])


def build(noise=0.02, seed=8):
    exchanger = Exchanger(OPTIONS)
    exchanger.measure(TRUE, noise, seed)
    return Inversion(exchanger)


if __name__ == "__main__":
    cli = argparse.ArgumentParser(description=__doc__)
    cli.add_argument("--iterations", type=int, default=60)
    cli.add_argument("--rate", type=float, default=0.3)
    args = cli.parse_args()
    inversion = build()
    log_k = inversion.descend(START, args.iterations, args.rate)
    print("objective", round(inversion.value(log_k), 5))
    print("k     ", np.round(np.exp(log_k), 2))
    print("k true", np.round(np.exp(TRUE), 2))

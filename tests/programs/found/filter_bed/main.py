"""Tune the grain coating of a sand filter so that the outflow meets a limit on dissolved iron."""
import argparse

from bed.settings import BedSettings
from bed.study import CoatingStudy

if __name__ == "__main__":
    cli = argparse.ArgumentParser(description=__doc__)
    cli.add_argument("--layers", type=int, default=24)
    cli.add_argument("--rounds", type=int, default=15)
    cli.add_argument("--rate", type=float, default=0.3)
    options = cli.parse_args()
    study = CoatingStudy(BedSettings(layers=options.layers, rounds=options.rounds, rate=options.rate))
    for r in range(options.rounds):
        line = study.round()
        if r % 3 == 0:
            print(f"round {r:2d}: " + "  ".join(f"{k} {v:.5f}" for k, v in line.items()))

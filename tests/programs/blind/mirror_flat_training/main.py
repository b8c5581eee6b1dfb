"""Train the flat command of a deformable mirror on simulated exposures."""
import argparse
import json

from bench import Bench
from training import Trainer

CONFIG = {
    "pixels_across": 18,
    "width": 0.5,
    "stroke": 1.5,
    "turbulence": 0.35,
    "seed": 400,
    "batch": 3,
    "rate": 0.9,
    "inertia": 0.6,
    "iterations": 60,
    "report": 10,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--set", action="append", default=[], help="key=value overrides")
    args = parser.parse_args()
    cfg = dict(CONFIG)
    for item in args.set:
        key, value = item.split("=")
        cfg[key] = json.loads(value)
    bench = Bench(cfg)
    before = bench.batch_merit([0.0] * 25, range(900, 920))
    command = Trainer(bench, cfg).run()
    after = bench.batch_merit(command, range(900, 920))
    print(f"lost light on 20 unseen screens: {before:.4f} -> {after:.4f}")


if __name__ == "__main__":
    main()

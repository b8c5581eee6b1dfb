"""Topology design of a passive heat spreader with projected gradient steps."""
import argparse

import numpy as np

from layout import Layout


def main(argv=None):
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--cells", type=int, default=14, help="cells along each side")
    ap.add_argument("--iterations", type=int, default=30)
    ap.add_argument("--move", type=float, default=0.06, help="largest change of a density per iteration")
    args = ap.parse_args(argv)
    layout = Layout(args.cells)
    x = layout.start()
    for it in range(args.iterations):
        value, g = layout.gradient(x)
        if it % 5 == 0:
            print(f"{it:3d} objective {value:9.4f}  mean density {x.mean():.3f}  |g| {np.linalg.norm(g):.4f}")
        x = np.clip(x - args.move * g / np.abs(g).max(), 0.01, 1.0)
    print("final", round(layout.objective(x), 4))


if __name__ == "__main__":
    main()

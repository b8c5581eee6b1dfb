"""Electrical resistance tomography of a soil block: find the conductivity below a row of electrodes."""
import argparse
import json
import pathlib

import numpy as np

from ert.inversion import Inversion
from ert.survey import Survey


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--side", type=int, default=6, help="cells along one edge")
    ap.add_argument("--updates", type=int, default=3)
    ap.add_argument("--rate", type=float, default=0.4)
    ap.add_argument("--log", type=pathlib.Path, default=None)
    args = ap.parse_args()

    survey = Survey(side=args.side)
    inversion = Inversion(survey, rate=args.rate)
    rows = [inversion.update(i) for i in range(args.updates)]
    if args.log:
        args.log.write_text(json.dumps(rows))
    err = np.abs(inversion.image() - survey.truth).mean()
    print(f"mean error of the image {err:.4f}")


if __name__ == "__main__":
    main()

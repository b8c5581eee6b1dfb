"""Calibrate line shift, width and gain of a Raman spectrometer from mixtures of known composition."""
import argparse
import logging

import numpy as np

import bands
from estimator import Estimator

log = logging.getLogger("raman")

CFG = dict(points=120, samples=24, batch=6, noise=0.01, seed=31, epochs=60, rate=0.05)
TRUE = dict(shift=[0.25, -0.15, 0.1], log_width=[-0.4, -0.2, -0.5], log_gain=[0.1, -0.2, 0.15])


def samples(cfg):
    rng = np.random.default_rng(cfg["seed"])
    fractions = rng.dirichlet(np.ones(3), cfg["samples"])
    clean = fractions @ bands.reference(cfg["points"], **TRUE)
    return fractions, clean + rng.normal(0.0, cfg["noise"], clean.shape)


def build(cfg):
    return Estimator(cfg["points"], cfg["batch"], *samples(cfg))


def fit(cfg):
    est = build(cfg)
    theta = np.zeros(9)
    for epoch in range(cfg["epochs"]):
        value, g = est.epoch(theta)
        if epoch % 10 == 0:
            log.info("epoch %3d  chi2 %.5f  |g| %.4f", epoch, value, np.linalg.norm(g))
        theta = theta - cfg["rate"] * g
    return theta, est.value(theta)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=CFG["epochs"])
    parser.add_argument("--batch", type=int, default=CFG["batch"])
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")
    theta, value = fit({**CFG, "epochs": args.epochs, "batch": args.batch})
    log.info("chi2 %.5f", value)
    for name, got in zip(TRUE, theta.reshape(3, 3)):
        log.info("%-9s %s (true %s)", name, np.round(got, 3), TRUE[name])

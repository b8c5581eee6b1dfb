"""Calibrate saturated conductivities of four layers against moisture probes."""

import argparse
import logging

import numpy as np
import warp as wp
from warp.optim import Adam

from column import Column, Hydraulics, combine, probe_misfit, smoothness

log = logging.getLogger("soil")


def scalar():
    return wp.zeros(1, dtype=float, requires_grad=True)


class Calibration:
    def __init__(self, report_every):
        self.report_every = report_every
        self.column = Column()
        self.hyd = Hydraulics()
        self.hyd.ksat = wp.array([0.9, 0.6, 0.8, 0.5], dtype=float, requires_grad=True)
        self.hyd.shape = wp.array([2.4], dtype=float, requires_grad=True)
        self.probes = wp.array([2, 7, 12, 17, 22, 27], dtype=int)
        self.seen = wp.array([0.44, 0.42, 0.40, 0.37, 0.36, 0.35], dtype=float)
        self.opt = Adam([self.hyd.ksat, self.hyd.shape], lr=0.02, betas=(0.5, 0.9))

    def step(self, it):
        self.data, self.reg, self.total = scalar(), scalar(), scalar()
        self.tape = wp.Tape()
        with self.tape:
            theta = self.column.run(self.hyd)
            wp.launch(probe_misfit, dim=6, inputs=[theta, self.probes, self.seen, 20.0], outputs=[self.data])
            wp.launch(smoothness, dim=3, inputs=[self.hyd.ksat, 0.02], outputs=[self.reg])
            wp.launch(combine, dim=1, inputs=[self.data, self.reg], outputs=[self.total])
        self.tape.backward(self.total)
        if (it + 1) % self.report_every == 0:
            self.report(it)
        self.update()
        self.tape.zero()
        return float(self.total.numpy()[0])

    def report(self, it):
        """How strong is the pull of the prior on each layer?"""
        full = self.hyd.ksat.grad.numpy().copy()
        self.tape.backward(self.reg)
        share = np.abs(self.hyd.ksat.grad.numpy() - full) / (np.abs(full) + 1e-12)
        log.info("it %d prior share per layer %s", it, np.round(share, 3))

    def update(self):
        self.opt.step([self.hyd.ksat.grad, self.hyd.shape.grad])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--iterations", type=int, default=9)
    ap.add_argument("--report-every", type=int, default=3)
    cfg = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    cal = Calibration(cfg.report_every)
    for it in range(cfg.iterations):
        value = cal.step(it)
        log.info("it %d total %.6f ksat %s shape %.4f", it, value, np.round(cal.hyd.ksat.numpy(), 4), cal.hyd.shape.numpy()[0])


if __name__ == "__main__":
    main()

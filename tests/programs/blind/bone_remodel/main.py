"""Fit remodelling constants of a bone sample from density scans taken over several months."""

import argparse

import numpy as np
import warp as wp
from warp.optim import SGD

from loads import lazy_zone


@wp.kernel
def month(
    rho: wp.array2d(dtype=float),
    t: int,
    stress: wp.array(dtype=float),
    setpoint: wp.array(dtype=float),
    half: wp.array(dtype=float),
    rate: wp.array(dtype=float),
    dt: float,
):
    i = wp.tid()
    r = rho[t, i]
    x = stress[i] / r - setpoint[0]
    grow = lazy_zone(x, half[0], rate[0])
    change = wp.clamp(grow - 0.4 * rate[0] * r * r, -5.0, 5.0)
    rho[t + 1, i] = wp.max(r + dt * change, 0.01)


@wp.kernel
def scan_error(rho: wp.array2d(dtype=float), scans: wp.array2d(dtype=float), stride: int, loss: wp.array(dtype=float)):
    k, i = wp.tid()
    d = rho[(k + 1) * stride, i] - scans[k, i]
    wp.atomic_add(loss, 0, 10.0 * d * d / float(scans.shape[0] * scans.shape[1]))


class Sample:
    def __init__(self, sites=30, months=30):
        self.sites, self.months = sites, months
        self.stress = wp.array(np.linspace(0.3, 1.4, sites), dtype=float)

    def develop(self, setpoint, half, rate):
        start = np.zeros((self.months + 1, self.sites), dtype=np.float32)
        start[0] = 0.8
        rho = wp.array(start, dtype=float, requires_grad=True)
        for t in range(self.months):
            wp.launch(month, dim=self.sites, inputs=[rho, t, self.stress, setpoint, half, rate, 0.1])
        return rho


class Fit:
    def __init__(self, sample, lr):
        def p(x):
            return wp.array([x], dtype=float, requires_grad=True)

        self.sample = sample
        truth = sample.develop(p(1.05), p(0.3), p(0.55))
        self.scans = wp.array(truth.numpy()[[10, 20, 30]], dtype=float)
        self.setpoint, self.half, self.rate = p(0.9), p(0.5), p(0.4)
        self.params = [self.setpoint, self.half, self.rate]
        self.opt = SGD(self.params, lr=lr, momentum=0.5)

    def iterate(self):
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            rho = self.sample.develop(*self.params)
            wp.launch(scan_error, dim=self.scans.shape, inputs=[rho, self.scans, 10], outputs=[self.loss])
        tape.backward(self.loss)
        self.update()
        tape.zero()
        return float(self.loss.numpy()[0])

    def update(self):
        self.opt.step([x.grad for x in self.params])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--iterations", type=int, default=10)
    ap.add_argument("--lr", type=float, default=0.05)
    cfg = ap.parse_args()
    fit = Fit(Sample(), cfg.lr)
    for it in range(cfg.iterations):
        v = fit.iterate()
        print(f"{it} error {v:.6f} " + " ".join(f"{float(x.numpy()[0]):.4f}" for x in fit.params))


if __name__ == "__main__":
    main()

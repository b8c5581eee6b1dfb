"""Vertical moisture transport in a layered soil column (kinematic wave with capillary term)."""

import numpy as np
import warp as wp


@wp.struct
class Hydraulics:
    ksat: wp.array(dtype=float)
    shape: wp.array(dtype=float)


@wp.kernel
def infiltrate(
    theta: wp.array(dtype=float),
    hyd: Hydraulics,
    rain: float,
    dt: float,
    dz: float,
    theta_new: wp.array(dtype=float),
):
    i = wp.tid()
    n = theta.shape[0]
    layer = i / 8
    here = theta[i]
    out = hyd.ksat[layer] * wp.pow(here, hyd.shape[0])
    inflow = float(rain)
    if i > 0:
        up = theta[i - 1]
        inflow = hyd.ksat[(i - 1) / 8] * wp.pow(up, hyd.shape[0])
    cap = float(0.0)
    if i > 0:
        cap += theta[i - 1] - here
    if i < n - 1:
        cap += theta[i + 1] - here
    theta_new[i] = here + dt * ((inflow - out) / dz + 0.4 * cap)


@wp.kernel
def probe_misfit(theta: wp.array(dtype=float), probes: wp.array(dtype=int), seen: wp.array(dtype=float), w: float, data: wp.array(dtype=float)):
    i = wp.tid()
    d = theta[probes[i]] - seen[i]
    wp.atomic_add(data, 0, w * d * d)


@wp.kernel
def smoothness(ksat: wp.array(dtype=float), w: float, reg: wp.array(dtype=float)):
    i = wp.tid()
    d = wp.log(ksat[i + 1]) - wp.log(ksat[i])
    wp.atomic_add(reg, 0, w * d * d)


@wp.kernel
def combine(data: wp.array(dtype=float), reg: wp.array(dtype=float), total: wp.array(dtype=float)):
    total[0] = data[0] + reg[0]


class Column:
    def __init__(self, cells=32, steps=40):
        self.cells, self.steps = cells, steps
        self.start = np.full(cells, 0.35, dtype=np.float32)

    def run(self, hyd, rain=0.12, dt=0.05, dz=0.2):
        theta = wp.array(self.start, dtype=float, requires_grad=True)
        for _ in range(self.steps):
            nxt = wp.zeros(self.cells, dtype=float, requires_grad=True)
            wp.launch(infiltrate, dim=self.cells, inputs=[theta, hyd, rain, dt, dz], outputs=[nxt])
            theta = nxt
        return theta

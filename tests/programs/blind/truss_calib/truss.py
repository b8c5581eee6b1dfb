"""Static pin-jointed chain: damped relaxation towards equilibrium, differentiable in the stiffnesses."""

import numpy as np
import warp as wp


@wp.kernel
def relax(u: wp.array(dtype=float), k: wp.array(dtype=float), load: wp.array(dtype=float), omega: float, out: wp.array(dtype=float)):
    i = wp.tid()
    n = u.shape[0]
    left = float(0.0)
    if i > 0:
        left = u[i - 1]
    kl = k[i]
    f = load[i] + kl * left
    diag = kl
    if i < n - 1:
        f += k[i + 1] * u[i + 1]
        diag += k[i + 1]
    out[i] = (1.0 - omega) * u[i] + omega * f / diag


@wp.kernel
def strain_residual(
    u: wp.array(dtype=float), gauges: wp.array(dtype=int), measured: wp.array(dtype=float), res: wp.array(dtype=float)
):
    g = wp.tid()
    i = gauges[g]
    res[g] = (u[i] - u[i - 1]) - measured[g]


class Truss:
    def __init__(self, joints=10, sweeps=160):
        self.joints, self.sweeps = joints, sweeps
        load = np.zeros(joints, dtype=np.float32)
        load[4], load[-1] = 0.6, 1.0
        self.load = wp.array(load, dtype=float)

    def solve(self, k):
        u = wp.zeros(self.joints, dtype=float, requires_grad=True)
        for _ in range(self.sweeps):
            nxt = wp.empty_like(u)
            wp.launch(relax, dim=self.joints, inputs=[u, k, self.load, 0.9], outputs=[nxt])
            u = nxt
        return u

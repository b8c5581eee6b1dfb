"""Flow-line glacier: fit softness and bed friction of a glacier to its present surface."""

import argparse

import numpy as np
import warp as wp

from laws import deformation, sliding


@wp.kernel
def ice_flux(
    thick: wp.array(dtype=float), bed: wp.array(dtype=float), soft: wp.array(dtype=float), friction: wp.array(dtype=float), dx: float, flux: wp.array(dtype=float)
):
    i = wp.tid()
    h = 0.5 * (thick[i] + thick[i + 1])
    slope = (thick[i] + bed[i] - thick[i + 1] - bed[i + 1]) / dx
    zone = i / 8
    flux[i] = deformation(h, slope, soft[0]) + sliding(h, slope, friction[zone])


@wp.kernel
def evolve(thick: wp.array(dtype=float), flux: wp.array(dtype=float), balance: wp.array(dtype=float), dx: float, dt: float, out: wp.array(dtype=float)):
    i = wp.tid()
    n = thick.shape[0]
    inflow = float(0.0)
    outflow = float(0.0)
    if i > 0:
        inflow = flux[i - 1]
    if i < n - 1:
        outflow = flux[i]
    out[i] = wp.max(thick[i] + dt * ((inflow - outflow) / dx + balance[i]), 0.001)


@wp.kernel
def surface_error(thick: wp.array(dtype=float), seen: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = thick[i] - seen[i]
    wp.atomic_add(loss, 0, 100.0 * d * d / float(thick.shape[0]))


class Glacier:
    def __init__(self, cells=32, years=60):
        self.cells, self.years = cells, years
        x = np.linspace(0.0, 1.0, cells)
        self.bed = wp.array((1.0 - 0.8 * x).astype(np.float32), dtype=float)
        self.balance = wp.array((0.15 * (0.45 - x)).astype(np.float32), dtype=float)
        self.start = (0.6 - 0.3 * x).astype(np.float32)
        self.dx = 1.0 / cells

    def run(self, soft, friction, dt=0.002):
        h = wp.array(self.start, dtype=float, requires_grad=True)
        for _ in range(self.years):
            q = wp.zeros(self.cells - 1, dtype=float, requires_grad=True)
            nxt = wp.zeros_like(h)
            wp.launch(ice_flux, dim=self.cells - 1, inputs=[h, self.bed, soft, friction, self.dx], outputs=[q])
            wp.launch(evolve, dim=self.cells, inputs=[h, q, self.balance, self.dx, dt], outputs=[nxt])
            h = nxt
        return h


class Inversion:
    def __init__(self, lr):
        self.g = Glacier()
        truth = self.g.run(wp.array([0.30], dtype=float), wp.array([0.3, 0.15, 0.25, 0.35], dtype=float))
        self.seen = wp.array(truth.numpy(), dtype=float)
        self.soft = wp.array([0.2], dtype=float, requires_grad=True)
        self.friction = wp.array([0.2] * 4, dtype=float, requires_grad=True)
        self.lr = lr

    def iterate(self):
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            h = self.g.run(self.soft, self.friction)
            wp.launch(surface_error, dim=self.g.cells, inputs=[h, self.seen], outputs=[self.loss])
        tape.backward(self.loss)
        self.descend(self.soft.grad.numpy().copy(), self.friction.grad.numpy().copy())
        tape.zero()
        return float(self.loss.numpy()[0])

    def descend(self, g_soft, g_fric):
        self.soft.assign(self.soft.numpy() - self.lr * g_soft)
        self.friction.assign(np.maximum(self.friction.numpy() - self.lr * g_fric, 0.0))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--iterations", type=int, default=9)
    ap.add_argument("--lr", type=float, default=0.1)
    cfg = ap.parse_args()
    inv = Inversion(cfg.lr)
    for it in range(cfg.iterations):
        print(f"{it} misfit {inv.iterate():.6f} softness {inv.soft.numpy()[0]:.4f} friction {inv.friction.numpy()}")


if __name__ == "__main__":
    main()

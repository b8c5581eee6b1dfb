"""Time marching of the duct, with segment-wise recomputation for the gradient."""
import math

import numpy as np
import warp as wp

import kernels as kn
from config import DuctConfig


class SegmentBuffers:
    """State arrays of one segment; index 0 holds the state the segment starts from."""

    def __init__(self, cfg: DuctConfig):
        n = cfg.segment + 1
        self.p = [wp.zeros(cfg.cells, dtype=float, requires_grad=True) for _ in range(n)]
        self.u = [wp.zeros(cfg.cells + 1, dtype=float, requires_grad=True) for _ in range(n)]
        self.m = [wp.zeros(cfg.cells, dtype=float, requires_grad=True) for _ in range(n)]

    def load(self, snapshot):
        for array, value in zip((self.p[0], self.u[0], self.m[0]), snapshot):
            array.assign(value)

    def final(self):
        return tuple(s[-1].numpy().copy() for s in (self.p, self.u, self.m))


class Duct:
    def __init__(self, cfg: DuctConfig):
        if cfg.steps % cfg.segment:
            raise ValueError("steps must be a multiple of segment")
        self.cfg = cfg
        self.log_area = wp.zeros(cfg.cells + 1, dtype=float, requires_grad=True)
        self.admittance = wp.zeros(cfg.cells, dtype=float, requires_grad=True)
        self.energy = wp.zeros(1, dtype=float, requires_grad=True)
        self.buffers = SegmentBuffers(cfg)
        self.rest = (np.zeros(cfg.cells, np.float32), np.zeros(cfg.cells + 1, np.float32), np.zeros(cfg.cells, np.float32))

    def set_design(self, log_area, admittance):
        self.log_area.assign(np.asarray(log_area, np.float32))
        self.admittance.assign(np.asarray(admittance, np.float32))

    def inflow(self, k):
        t = k * self.cfg.dt
        return math.sin(2.0 * math.pi * self.cfg.tone * t) * (1.0 - math.exp(-2.0 * t))

    def march(self, first):
        c, b = self.cfg, self.buffers
        for j in range(c.segment):
            wp.launch(
                kn.update_velocity,
                c.cells + 1,
                inputs=[b.p[j], b.u[j], c.courant, self.inflow(first + j), c.cells],
                outputs=[b.u[j + 1]],
            )
            wp.launch(
                kn.update_pressure,
                c.cells,
                inputs=[b.p[j], b.u[j + 1], b.m[j], self.log_area, self.admittance, c.courant, c.dt],
                outputs=[b.p[j + 1]],
            )
            wp.launch(
                kn.update_liner, c.cells, inputs=[b.p[j + 1], b.m[j], c.dt / c.liner_time], outputs=[b.m[j + 1]]
            )
            wp.launch(kn.listen, 1, inputs=[b.p[j + 1], c.microphone, 10.0 / c.steps], outputs=[self.energy])

    def penalty(self):
        wp.launch(kn.area_penalty, self.cfg.cells, inputs=[self.log_area, self.cfg.area_weight], outputs=[self.energy])

    def forward(self):
        """Objective and the snapshots at the start of each segment."""
        c = self.cfg
        self.energy.zero_()
        state, snapshots = self.rest, []
        for first in range(0, c.steps, c.segment):
            snapshots.append(state)
            self.buffers.load(state)
            self.march(first)
            state = self.buffers.final()
        self.penalty()
        return float(self.energy.numpy()[0]), snapshots

    def gradient(self):
        """Reverse sweep over the segments; returns objective, d/dlog_area, d/dadmittance."""
        c, b = self.cfg, self.buffers
        value, snapshots = self.forward()
        g_area = np.zeros(c.cells + 1)
        g_adm = np.zeros(c.cells)
        carry = None
        for index in reversed(range(len(snapshots))):
            b.load(snapshots[index])
            tape = wp.Tape()
            with tape:
                self.march(index * c.segment)
                if index == 0:
                    self.penalty()
            seeds = {}
            if carry is not None:
                seeds = {b.p[-1]: carry[0], b.u[-1]: carry[1]}
            tape.backward(self.energy, grads=seeds)
            carry = (wp.clone(b.p[0].grad), wp.clone(b.u[0].grad))
            g_area += self.log_area.grad.numpy()
            g_adm += self.admittance.grad.numpy()
            tape.zero()
        return value, g_area, g_adm

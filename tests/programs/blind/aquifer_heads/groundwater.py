"""Steady heads and the misfit functional of the inversion."""
import numpy as np
import warp as wp

import grid

F = wp.float64


class Groundwater:
    def __init__(self, field, sigma=0.02, weight=0.5, tolerance=1e-11, sweeps=40):
        self.field = field
        self.shape = (field.nx, field.ny)
        self.q = wp.array(field.sources(), dtype=F)
        self.cell = wp.array(np.array(field.gauges), dtype=wp.vec2i)
        self.seen = None
        self.sigma = sigma
        self.weight = weight
        self.tolerance = tolerance
        self.sweeps = sweeps
        self.start = np.full(self.shape, 0.5 * (field.west_head + field.east_head))

    def _sweep(self, k, h, h_new):
        f = self.field
        wp.launch(grid.sweep, self.shape, inputs=[k, self.q, F(f.west_head), F(f.east_head), h], outputs=[h_new])

    def solve(self, k, limit=6000):
        """Heads for the conductivities k, iterated until the sweeps stop changing them."""
        a = wp.array(self.start, dtype=F)
        b = wp.zeros_like(a)
        for it in range(limit):
            self._sweep(k, a, b)
            a, b = b, a
            if it % 50 == 49 and np.abs(a.numpy() - b.numpy()).max() < self.tolerance:
                break
        self.start = a.numpy().copy()
        return a

    def attach(self, k, heads):
        """Connect solved heads to the conductivities on the active tape."""
        h = heads
        for _ in range(self.sweeps):
            h_new = wp.zeros(self.shape, dtype=F, requires_grad=True)
            self._sweep(k, h, h_new)
            h = h_new
        return h

    def score(self, log_k, h, out):
        wp.launch(
            grid.gauge_misfit, len(self.field.gauges), inputs=[h, self.cell, self.seen, F(self.sigma)], outputs=[out]
        )
        wp.launch(grid.smoothness, self.shape, inputs=[log_k, F(self.weight)], outputs=[out])

    def observe(self, log_k, seed):
        k = wp.array(np.exp(log_k), dtype=F)
        h = self.solve(k).numpy()
        values = np.array([h[c] for c in self.field.gauges])
        self.seen = wp.array(values + np.random.default_rng(seed).normal(0.0, self.sigma, len(values)), dtype=F)

    def value(self, x):
        log_k = wp.array(x, dtype=F)
        k = wp.array(np.exp(x), dtype=F)
        out = wp.zeros(1, dtype=F)
        self.score(log_k, self.solve(k), out)
        return float(out.numpy()[0])

    def value_and_gradient(self, x):
        log_k = wp.array(x, dtype=F, requires_grad=True)
        heads = self.solve(wp.array(np.exp(x), dtype=F))
        out = wp.zeros(1, dtype=F, requires_grad=True)
        tape = wp.Tape()
        with tape:
            k = wp.zeros(self.shape, dtype=F, requires_grad=True)
            wp.launch(grid.conductivity, self.shape, inputs=[log_k], outputs=[k])
            self.score(log_k, self.attach(k, heads), out)
        tape.backward(out)
        return float(out.numpy()[0]), log_k.grad.numpy().copy()

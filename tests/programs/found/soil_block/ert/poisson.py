"""Solve div(sigma grad u) = -current on the block, on the device."""
import numpy as np
import warp as wp

from .kernels import sweep


class PotentialSolver:
    """Jacobi sweeps, each into its own array, so that the tape can go back through them."""

    def __init__(self, side, ground):
        self.side, self.ground = side, ground
        self.fields = []

    def field(self, k):
        while len(self.fields) <= k:
            self.fields.append(wp.zeros((self.side, self.side), dtype=float, requires_grad=True))
        return self.fields[k]

    def solve(self, sigma, current, first):
        u = self.field(first)
        for k in range(12):
            out = self.field(first + k + 1)
            wp.launch(
                sweep, (self.side, self.side), inputs=[u, sigma, current, self.ground, self.side], outputs=[out]
            )
            u = out
        return u

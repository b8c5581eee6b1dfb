"""Hourly surface current charts of a strait."""
import numpy as np
import warp as wp


class Charts:
    """Current on a regular grid, one chart in memory at a time."""

    def __init__(self, nx=24, ny=16, cell=1.0):
        self.nx, self.ny, self.cell = nx, ny, cell
        gx, gy = np.meshgrid(np.arange(nx) * cell, np.arange(ny) * cell, indexing="ij")
        self.gx, self.gy = gx, gy
        self.page = np.zeros((nx, ny, 2), dtype=np.float32)
        self.field = wp.array(self.page, dtype=wp.vec2, copy=False)

    def hour(self, h):
        tide = np.cos(2.0 * np.pi * h / 12.0)
        u = 0.9 * tide * np.sin(0.55 * self.gy + 0.2 * h) + 0.35
        v = 0.8 * np.sin(0.5 * self.gx - 0.3 * h) * (0.4 + 0.6 * tide)
        return np.stack([u, v], axis=-1)

    def turn_to(self, h):
        self.page[:] = self.hour(h)
        return self.field

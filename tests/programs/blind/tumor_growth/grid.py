"""Small helpers for cell-centred 2-D fields."""

import numpy as np
import warp as wp


def alloc(shape, grad=True):
    return wp.zeros(shape, dtype=float, requires_grad=grad)


def disc_mask(n, radius=0.45):
    c = (np.arange(n) + 0.5) / n - 0.5
    xx, yy = np.meshgrid(c, c, indexing="ij")
    return wp.array(((xx * xx + yy * yy) < radius * radius).astype(np.float32), dtype=float)


def blob(n, centre, width):
    c = (np.arange(n) + 0.5) / n
    xx, yy = np.meshgrid(c, c, indexing="ij")
    r2 = (xx - centre[0]) ** 2 + (yy - centre[1]) ** 2
    return (0.6 * np.exp(-r2 / (2.0 * width * width))).astype(np.float32)

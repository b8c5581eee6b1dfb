"""Five-point finite-volume Darcy flow on a regular grid: kernels and geometry."""
from dataclasses import dataclass, field

import numpy as np
import warp as wp


@dataclass
class Field:
    nx: int = 16
    ny: int = 12
    recharge: float = 0.02
    west_head: float = 2.0
    east_head: float = 1.0
    wells: dict = field(default_factory=lambda: {(4, 3): -0.5, (11, 8): -0.4, (7, 9): 0.25})
    gauges: tuple = ((2, 2), (5, 6), (6, 10), (8, 2), (9, 5), (12, 3), (12, 9), (14, 7), (3, 8))

    def sources(self):
        q = np.full((self.nx, self.ny), self.recharge)
        for (i, j), rate in self.wells.items():
            q[i, j] += rate
        return q


@wp.func
def harmonic(a: wp.float64, b: wp.float64):
    return wp.float64(2.0) * a * b / (a + b)


@wp.kernel
def conductivity(log_k: wp.array2d(dtype=wp.float64), k: wp.array2d(dtype=wp.float64)):
    i, j = wp.tid()
    k[i, j] = wp.exp(log_k[i, j])


@wp.kernel
def sweep(
    k: wp.array2d(dtype=wp.float64),
    q: wp.array2d(dtype=wp.float64),
    west: wp.float64,
    east: wp.float64,
    h: wp.array2d(dtype=wp.float64),
    h_new: wp.array2d(dtype=wp.float64),
):
    """One Jacobi sweep; fixed heads beyond the west and east rims, no flow to the north and south."""
    i, j = wp.tid()
    nx = k.shape[0]
    ny = k.shape[1]
    here = k[i, j]
    top = q[i, j]
    bottom = wp.float64(0.0)
    if i > 0:
        c = harmonic(here, k[i - 1, j])
        top += c * h[i - 1, j]
        bottom += c
    else:
        top += wp.float64(2.0) * here * west
        bottom += wp.float64(2.0) * here
    if i < nx - 1:
        c = harmonic(here, k[i + 1, j])
        top += c * h[i + 1, j]
        bottom += c
    else:
        top += wp.float64(2.0) * here * east
        bottom += wp.float64(2.0) * here
    if j > 0:
        c = harmonic(here, k[i, j - 1])
        top += c * h[i, j - 1]
        bottom += c
    if j < ny - 1:
        c = harmonic(here, k[i, j + 1])
        top += c * h[i, j + 1]
        bottom += c
    h_new[i, j] = top / bottom


@wp.kernel
def gauge_misfit(
    h: wp.array2d(dtype=wp.float64),
    cell: wp.array(dtype=wp.vec2i),
    seen: wp.array(dtype=wp.float64),
    sigma: wp.float64,
    out: wp.array(dtype=wp.float64),
):
    g = wp.tid()
    r = (h[cell[g][0], cell[g][1]] - seen[g]) / sigma
    wp.atomic_add(out, 0, r * r)


@wp.kernel
def smoothness(log_k: wp.array2d(dtype=wp.float64), weight: wp.float64, out: wp.array(dtype=wp.float64)):
    i, j = wp.tid()
    if i + 1 < log_k.shape[0]:
        d = log_k[i + 1, j] - log_k[i, j]
        wp.atomic_add(out, 0, weight * d * d)
    if j + 1 < log_k.shape[1]:
        d = log_k[i, j + 1] - log_k[i, j]
        wp.atomic_add(out, 0, weight * d * d)

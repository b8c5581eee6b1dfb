"""Smoothed compliant contact with a hand-written derivative (the automatic one was slow to build)."""

import warp as wp

BAND = wp.constant(0.04)


@wp.func
def pressure(gap: float, stiffness: float):
    """Zero above BAND, quadratic inside the band, linear once the bodies overlap."""
    p = float(0.0)
    if gap < 0.0:
        p = stiffness * (0.5 * BAND - gap)
    elif gap < BAND:
        p = 0.5 * stiffness * (BAND - gap) * (BAND - gap) / BAND
    return p


@wp.func_grad(pressure)
def adj_pressure(gap: float, stiffness: float, adj_ret: float):
    if gap < 0.0:
        wp.adjoint[gap] += -stiffness * adj_ret
    elif gap < BAND:
        s = (BAND - gap) / BAND
        wp.adjoint[gap] += -stiffness * s * adj_ret
        wp.adjoint[stiffness] += 0.5 * BAND * s * s * adj_ret

"""Stimulus law for bone remodelling."""

import warp as wp


@wp.func
def lazy_zone(x: float, half: float, rate: float):
    """Smooth dead band: log-cosh like growth on both sides, evaluated in a stable way."""
    s = wp.abs(x)
    return rate * (s + half * wp.log(1.0 + wp.exp(-2.0 * s / half)))


@wp.func_grad(lazy_zone)
def adj_lazy_zone(x: float, half: float, rate: float, adj_ret: float):
    s = wp.abs(x)
    e = wp.exp(-2.0 * s / half)
    wp.adjoint[x] += adj_ret * rate * wp.sign(x) * (1.0 - e) / (1.0 + e)
    wp.adjoint[half] += adj_ret * rate * (wp.log(1.0 + e) + 2.0 * s / half * e / (1.0 + e))
    wp.adjoint[rate] += adj_ret * (s + half * wp.log(1.0 + e))

"""Functions of light."""

import warp as wp


@wp.func
def polish(v: wp.vec3, k: float):
    """Three passes of smoothing; each uses what the last has made of it."""
    c = v
    c[0] = c[0] + k * wp.sin(c[1])
    c[1] = c[1] + k * c[0] * c[2]
    c[0] = c[0] * c[1]
    return c


@wp.func
def fringe(v: wp.vec3, n: int):
    s = float(0.0)
    for j in range(4):
        s += wp.cos(float(j) * v[0]) / (1.0 + v[2] * v[2])
    return s

"""Planar arm with four links driven by joint splines."""

import warp as wp


@wp.kernel
def interpolate(knots: wp.array2d(dtype=float), steps: int, angles: wp.array2d(dtype=float)):
    t, j = wp.tid()
    s = float(t) / float(steps - 1) * 3.0
    k = wp.min(int(s), 2)
    f = s - float(k)
    w = f * f * (3.0 - 2.0 * f)
    angles[t, j] = (1.0 - w) * knots[k, j] + w * knots[k + 1, j]


@wp.kernel
def tip_positions(angles: wp.array2d(dtype=float), links: wp.array(dtype=float), tip: wp.array(dtype=wp.vec2)):
    t = wp.tid()
    a = float(0.0)
    x = float(0.0)
    y = float(0.0)
    for j in range(4):
        a += angles[t, j]
        x += links[j] * wp.cos(a)
        y += links[j] * wp.sin(a)
    tip[t] = wp.vec2(x, y)


@wp.kernel
def follow(tip: wp.array(dtype=wp.vec2), path: wp.array(dtype=wp.vec2), w: float, loss: wp.array(dtype=float)):
    t = wp.tid()
    d = tip[t] - path[t]
    wp.atomic_add(loss, 0, w * wp.dot(d, d))


@wp.kernel
def effort(angles: wp.array2d(dtype=float), w: float, loss: wp.array(dtype=float)):
    t, j = wp.tid()
    d = angles[t + 1, j] - angles[t, j]
    wp.atomic_add(loss, 0, w * d * d)


@wp.kernel
def joint_limits(angles: wp.array2d(dtype=float), limit: float, w: float, loss: wp.array(dtype=float)):
    t, j = wp.tid()
    over = wp.max(wp.abs(angles[t, j]) - limit, 0.0)
    wp.atomic_add(loss, 0, w * over * over)

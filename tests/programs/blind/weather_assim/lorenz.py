"""Lorenz-96: a ring of 24 weather variables."""
import warp as wp

RING = wp.constant(24)


@wp.func
def tendency(x: wp.array(dtype=wp.float64), i: int, forcing: wp.float64):
    a = x[(i + 1) % RING]
    b = x[(i + RING - 2) % RING]
    c = x[(i + RING - 1) % RING]
    return (a - b) * c - x[i] + forcing


@wp.kernel
def half(
    x: wp.array(dtype=wp.float64),
    forcing: wp.array(dtype=wp.float64),
    dt: wp.float64,
    out: wp.array(dtype=wp.float64),
):
    i = wp.tid()
    out[i] = x[i] + wp.float64(0.5) * dt * tendency(x, i, forcing[0])


@wp.kernel
def whole(
    x: wp.array(dtype=wp.float64),
    mid: wp.array(dtype=wp.float64),
    forcing: wp.array(dtype=wp.float64),
    dt: wp.float64,
    out: wp.array(dtype=wp.float64),
):
    i = wp.tid()
    out[i] = x[i] + dt * tendency(mid, i, forcing[0])


@wp.kernel
def departure(
    x: wp.array(dtype=wp.float64),
    seen: wp.array2d(dtype=wp.float64),
    row: int,
    w: wp.float64,
    cost: wp.array(dtype=wp.float64),
):
    k = wp.tid()
    d = x[2 * k] - seen[row, k]
    wp.atomic_add(cost, 0, w * d * d)

"""Transfer through ten thin quadrupoles with steering kicks."""

import warp as wp


@wp.func
def next_slot(counter: wp.array(dtype=int)):
    return wp.atomic_add(counter, 0, 1)


@wp.kernel
def fly(
    y0: wp.array(dtype=float),
    dy0: wp.array(dtype=float),
    field: wp.array(dtype=float),
    kick: wp.array(dtype=float),
    aperture: float,
    counter: wp.array(dtype=int),
    hits: wp.array(dtype=wp.vec2),
):
    i = wp.tid()
    y = y0[i]
    dy = dy0[i]
    lost = int(0)
    for k in range(10):
        dy = dy - field[k] * (y + 0.5 * y * y * y) + kick[k]
        y = y + 0.3 * dy
        if wp.abs(y) > aperture:
            lost = 1
    if lost == 0:
        slot = next_slot(counter)
        hits[slot] = wp.vec2(y, 1.0)


@wp.kernel
def hit_error(hits: wp.array(dtype=wp.vec2), scale: float, loss: wp.array(dtype=float)):
    k = wp.tid()
    h = hits[k]
    wp.atomic_add(loss, 0, scale * h[1] * h[0] * h[0])


@wp.kernel
def ripple(p: wp.array(dtype=float), w: float, loss: wp.array(dtype=float)):
    k = wp.tid()
    d = p[k + 1] - p[k]
    wp.atomic_add(loss, 0, w * d * d)

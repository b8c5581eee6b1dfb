import warp as wp


@wp.kernel
def elevation(
    amp: wp.array(dtype=float),
    phase: wp.array(dtype=float),
    speed: wp.array(dtype=float),
    dt: float,
    sea: wp.array(dtype=float),
):
    t = wp.tid()
    h = float(0.0)
    for k in range(4):
        h += amp[k] * wp.cos(speed[k] * float(t) * dt - phase[k])
    sea[t] = h


@wp.kernel
def fill(
    sea: wp.array(dtype=float),
    mouth: wp.array(dtype=float),
    level: wp.array2d(dtype=float),
    t: int,
    dt: float,
):
    """Level and flux in a lagoon behind a narrow mouth."""
    h = level[t, 0]
    q = level[t, 1]
    drag = mouth[0] * q * wp.abs(q)
    level[t + 1, 1] = q + dt * (mouth[1] * (sea[t] - h) - drag)
    level[t + 1, 0] = h + dt * 0.8 * q


@wp.kernel
def gauge(level: wp.array2d(dtype=float), seen: wp.array(dtype=float), w: float, misfit: wp.array(dtype=float)):
    t = wp.tid()
    d = level[t, 0] - seen[t]
    wp.atomic_add(misfit, 0, w * d * d)

import warp as wp


@wp.struct
class Air:
    temperature: float
    sinking: float
    lift: float


@wp.func
def shrink(r: float, w: float, air_t: float, k: float):
    """Rate of the radius of a droplet with water fraction w."""
    return -k * air_t * w * (1.0 + 0.3 * wp.sqrt(r)) / (r + 0.2)


@wp.kernel
def dry(
    radius: wp.array(dtype=float),
    water: wp.array(dtype=float),
    substeps: wp.array(dtype=int),
    rate: wp.array(dtype=float),
    air: Air,
    dt: float,
    radius_out: wp.array(dtype=float),
    water_out: wp.array(dtype=float),
):
    i = wp.tid()
    n = substeps[i]
    h = dt / float(n)
    r = radius[i]
    w = water[i]
    for s in range(n):
        dr = shrink(r, w, air.temperature, rate[0])
        w = w + h * (3.0 * dr * (1.0 - w) / (r + 0.1) - rate[1] * w * w)
        r = r + h * dr
    radius_out[i] = r
    water_out[i] = w


@wp.kernel
def compare(
    radius: wp.array(dtype=float),
    water: wp.array(dtype=float),
    radius_seen: wp.array(dtype=float),
    water_seen: wp.array(dtype=float),
    w: float,
    loss: wp.array(dtype=float),
):
    i = wp.tid()
    a = radius[i] - radius_seen[i]
    b = water[i] - water_seen[i]
    wp.atomic_add(loss, 0, w * (a * a + 0.5 * b * b))

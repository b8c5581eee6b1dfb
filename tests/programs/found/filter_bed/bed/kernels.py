import warp as wp


@wp.func
def take_up(load: wp.array(dtype=float), i: int, rate: float) -> float:
    """What a layer binds in a day; the layer keeps the rest of its capacity."""
    free = load[i]
    bound = rate * free * free / (1.0 + free)
    load[i] = free - 0.5 * bound
    return bound


@wp.kernel
def coat(thickness: wp.array(dtype=float), capacity: wp.array(dtype=float)):
    i = wp.tid()
    capacity[i] = 1.5 * wp.exp(thickness[i])


@wp.kernel
def day(capacity: wp.array(dtype=float), rate: float, n: int, d: int, uptake: wp.array(dtype=float)):
    i = wp.tid()
    uptake[d * n + i] = take_up(capacity, i, rate)


@wp.kernel
def sum_up(uptake: wp.array(dtype=float), n: int, total: wp.array(dtype=float)):
    d, i = wp.tid()
    wp.atomic_add(total, d, uptake[d * n + i])


@wp.kernel
def outflow(total: wp.array(dtype=float), inflow: wp.array(dtype=float), out: wp.array(dtype=float)):
    d = wp.tid()
    out[d] = inflow[d] * wp.exp(-0.12 * total[d])


@wp.kernel
def penalty(out: wp.array(dtype=float), limit: float, cost: wp.array(dtype=float)):
    d = wp.tid()
    e = out[d] - limit
    wp.atomic_add(cost, 0, e * e)


@wp.kernel
def upkeep(thickness: wp.array(dtype=float), weight: float, cost: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(cost, 0, weight * thickness[i] * thickness[i])

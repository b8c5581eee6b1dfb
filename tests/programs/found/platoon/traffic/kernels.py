import warp as wp


@wp.func
def wanted(gap: float, vmax: float, comfort: float) -> float:
    return 0.5 * vmax * (wp.tanh(gap - comfort) + wp.tanh(comfort))


@wp.kernel
def follow(
    x: wp.array(dtype=float),
    v: wp.array(dtype=float),
    law: wp.array(dtype=float),
    dt: float,
    leader: float,
    x_out: wp.array(dtype=float),
    v_out: wp.array(dtype=float),
):
    c = wp.tid()
    ahead = leader
    if c > 0:
        ahead = x[c - 1]
    a = law[1] * (wanted(ahead - x[c], law[0] * 2.0, law[2]) - v[c])
    vn = v[c] + dt * a
    v_out[c] = vn
    x_out[c] = x[c] + dt * vn


@wp.kernel
def compare(
    x: wp.array(dtype=float),
    v: wp.array(dtype=float),
    x_seen: wp.array(dtype=float),
    v_seen: wp.array(dtype=float),
    cost: wp.array(dtype=float),
):
    c = wp.tid()
    dx = x[c] - x_seen[c]
    dv = v[c] - v_seen[c]
    wp.atomic_add(cost, 0, dx * dx + 0.5 * dv * dv)

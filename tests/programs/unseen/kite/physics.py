import warp as wp


@wp.kernel
def blank(f: wp.array(dtype=wp.vec3)):
    f[wp.tid()] = wp.vec3(0.0, 0.0, 0.0)


@wp.kernel
def tether(x: wp.array(dtype=wp.vec3), rest: float, ke: float, f: wp.array(dtype=wp.vec3)):
    s = wp.tid()
    d = x[s + 1] - x[s]
    n = wp.length(d)
    pull = d * (ke * (n - rest) / n)
    wp.atomic_add(f, s, pull)
    wp.atomic_sub(f, s + 1, pull)


@wp.kernel
def weather(x: wp.array(dtype=wp.vec3), v: wp.array(dtype=wp.vec3), wind: wp.array(dtype=wp.vec3), f: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    gust = wind[0] * (1.0 + 0.2 * x[i][2]) - v[i]
    wp.atomic_add(f, i, 0.5 * gust + wp.vec3(0.0, 0.0, -0.3))


@wp.kernel
def symplectic(x: wp.array(dtype=wp.vec3), v: wp.array(dtype=wp.vec3), f: wp.array(dtype=wp.vec3), dt: float,
               x1: wp.array(dtype=wp.vec3), v1: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    if i == 0:
        x1[i] = x[i]
        v1[i] = wp.vec3(0.0, 0.0, 0.0)
    else:
        u = v[i] + dt * f[i]
        v1[i] = u
        x1[i] = x[i] + dt * u


@wp.kernel
def seen_at(x: wp.array(dtype=wp.vec3), spot: wp.vec3, miss: wp.array(dtype=float)):
    last = x.shape[0] - 1
    d = x[last] - spot
    miss[0] = wp.dot(d, d)

import warp as wp


@wp.struct
class House:
    loss_rate: float
    solar_gain: float
    soil_rate: float
    damp_rate: float


@wp.func
def derive(s: wp.vec3, h: House, outside: float, sun: float, heat: float, vent: float):
    """s = (air temperature, soil temperature, humidity)"""
    leak = h.loss_rate * (1.0 + 2.0 * vent) * (outside - s[0])
    air = leak + h.solar_gain * sun + heat + 0.15 * (s[1] - s[0])
    soil = h.soil_rate * (s[0] - s[1])
    damp = h.damp_rate * (0.02 * s[0] * s[0] / 10.0 + 0.3 - s[2]) - 0.5 * vent * s[2]
    return wp.vec3(air, soil, damp)


@wp.kernel
def advance(
    state: wp.array(dtype=wp.vec3),
    house: House,
    weather: wp.array(dtype=wp.vec2),
    control: wp.array(dtype=wp.vec2),
    t: int,
    dt: float,
    out: wp.array(dtype=wp.vec3),
):
    heat = wp.exp(control[t][0])
    vent = 1.0 / (1.0 + wp.exp(-control[t][1]))
    s = state[0]
    w = weather[t]
    a = derive(s, house, w[0], w[1], heat, vent)
    b = derive(s + dt * a, house, w[0], w[1], heat, vent)
    out[0] = s + 0.5 * dt * (a + b)


@wp.kernel
def discomfort(state: wp.array(dtype=wp.vec3), want: float, loss: wp.array(dtype=float)):
    s = state[0]
    d = s[0] - want
    e = wp.max(s[2] - 0.8, 0.0)
    wp.atomic_add(loss, 0, d * d + 40.0 * e * e)


@wp.kernel
def energy(control: wp.array(dtype=wp.vec2), first: int, price: float, loss: wp.array(dtype=float)):
    t = wp.tid()
    wp.atomic_add(loss, 0, price * wp.exp(control[first + t][0]))

"""A rocket sled on a bumpy track: position, speed, heat of the shoes and fuel mass as one vec4."""
import warp as wp


@wp.struct
class Track:
    drag: float
    rub: float
    bump: float
    cooling: float


@wp.kernel
def move(
    state: wp.array(dtype=wp.vec4),
    throttle: wp.array(dtype=float),
    track: Track,
    t: int,
    dt: float,
    out: wp.array(dtype=wp.vec4),
):
    s = state[0]
    u = 1.0 / (1.0 + wp.exp(-throttle[t]))
    mass = 1.0 + s[3]
    slope = track.bump * wp.cos(1.5 * s[0])
    force = 3.0 * u * s[3] - track.drag * s[1] * s[1] - slope - track.rub * (1.0 + 0.2 * s[2]) * wp.tanh(4.0 * s[1])
    v = s[1] + dt * force / mass
    heat = s[2] + dt * (0.3 * track.rub * v * v - track.cooling * s[2])
    fuel = s[3] - dt * 0.5 * u * s[3]
    out[0] = wp.vec4(s[0] + dt * v, v, heat, fuel)


@wp.kernel
def strain(state: wp.array(dtype=wp.vec4), w: float, cost: wp.array(dtype=float)):
    h = state[0][2]
    wp.atomic_add(cost, 0, w * h * h)


@wp.kernel
def arrive(state: wp.array(dtype=wp.vec4), goal: float, cost: wp.array(dtype=float)):
    s = state[0]
    d = s[0] - goal
    wp.atomic_add(cost, 0, d * d + 0.2 * s[1] * s[1] - 0.3 * s[3])

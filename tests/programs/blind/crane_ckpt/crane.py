"""Trolley position, trolley speed, swing angle, swing rate."""

import warp as wp


@wp.kernel
def move_crane(s: wp.array(dtype=wp.vec4), u: wp.array(dtype=float), k: int, dt: float, out: wp.array(dtype=wp.vec4)):
    i = wp.tid()
    q = s[i]
    a = u[k] - 0.2 * q[1]
    alpha = -9.81 / 2.0 * wp.sin(q[2]) - a / 2.0 * wp.cos(q[2]) - 0.05 * q[3]
    w = q[3] + dt * alpha
    v = q[1] + dt * a
    out[i] = wp.vec4(q[0] + dt * v, v, q[2] + dt * w, w)


@wp.kernel
def final_cost(s: wp.array(dtype=wp.vec4), goal: float, cost: wp.array(dtype=float)):
    q = s[0]
    e = q[0] - goal
    wp.atomic_add(cost, 0, e * e + 0.5 * q[1] * q[1] + 2.0 * q[2] * q[2] + 0.3 * q[3] * q[3])


@wp.kernel
def control_cost(u: wp.array(dtype=float), w: float, cost: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(cost, 0, w * u[i] * u[i])

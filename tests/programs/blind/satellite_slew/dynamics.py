"""Rigid-body attitude dynamics of a small satellite with three reaction wheels (body frame, quaternion attitude)."""
import warp as wp


@wp.struct
class Body:
    inertia: wp.vec3
    torque_limit: float
    dt: float


@wp.func
def wheel_torque(command: wp.vec3, limit: float):
    return wp.vec3(
        limit * wp.tanh(command[0] / limit), limit * wp.tanh(command[1] / limit), limit * wp.tanh(command[2] / limit)
    )


@wp.kernel
def turn(
    body: Body,
    q: wp.array(dtype=wp.quat),
    w: wp.array(dtype=wp.vec3),
    command: wp.array(dtype=wp.vec3),
    k: int,
    disturbance: wp.vec3,
):
    """Advance entry k of the trajectory to entry k + 1."""
    rate = w[k]
    h = wp.cw_mul(body.inertia, rate)
    torque = wheel_torque(command[k], body.torque_limit) + disturbance
    acc = wp.cw_div(torque - wp.cross(rate, h), body.inertia)
    rate_new = rate + body.dt * acc
    spin = wp.quat(rate_new[0], rate_new[1], rate_new[2], 0.0)
    w[k + 1] = rate_new
    q[k + 1] = wp.normalize(q[k] + 0.5 * body.dt * (q[k] * spin))


@wp.kernel
def running_cost(
    q: wp.array(dtype=wp.quat),
    w: wp.array(dtype=wp.vec3),
    command: wp.array(dtype=wp.vec3),
    target: wp.quat,
    last: int,
    out: wp.array(dtype=float),
):
    k = wp.tid()
    e = wp.quat_inverse(target) * q[k + 1]
    attitude = 1.0 - e[3] * e[3]
    weight = float(1.0)
    if k == last:
        weight = 8.0
    cost = weight * (attitude + 0.3 * wp.dot(w[k + 1], w[k + 1]))
    cost += 0.5 * wp.dot(command[k], command[k])
    if k > 0:
        jump = command[k] - command[k - 1]
        cost += 0.2 * wp.dot(jump, jump)
    wp.atomic_add(out, 0, cost)

"""Small craft that turn and coast; everything is advanced in place."""
import warp as wp


@wp.kernel
def rewind(
    home: wp.array(dtype=wp.vec3),
    pose: wp.array(dtype=wp.quat),
    pos: wp.array(dtype=wp.vec3),
    vel: wp.array(dtype=wp.vec3),
    loss: wp.array(dtype=float),
    heading: wp.array2d(dtype=wp.quat),
):
    i = wp.tid()
    pos[i] = home[i]
    vel[i] = wp.vec3(0.0, 0.0, 0.0)
    heading[0, i] = pose[i]
    if i == 0:
        loss[0] = 0.0


@wp.kernel
def steer(spin: wp.array2d(dtype=wp.vec3), heading: wp.array2d(dtype=wp.quat), t: int, dt: float):
    i = wp.tid()
    w = spin[t, i]
    q = heading[t, i]
    dq = wp.quat(w[0], w[1], w[2], 0.0) * q
    heading[t + 1, i] = wp.normalize(q + 0.5 * dt * dq)


@wp.kernel
def thrust(heading: wp.array2d(dtype=wp.quat), vel: wp.array(dtype=wp.vec3), t: int, power: float, dt: float):
    i = wp.tid()
    vel[i] += dt * power * wp.quat_rotate(heading[t + 1, i], wp.vec3(1.0, 0.0, 0.0))


@wp.kernel
def drag(vel: wp.array(dtype=wp.vec3), keep: float):
    i = wp.tid()
    vel[i] = keep * vel[i]


@wp.kernel
def coast(pos: wp.array(dtype=wp.vec3), vel: wp.array(dtype=wp.vec3), dt: float):
    i = wp.tid()
    pos[i] += dt * vel[i]


@wp.kernel
def formation(pos: wp.array(dtype=wp.vec3), vel: wp.array(dtype=wp.vec3), post: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = pos[i] - post[i]
    wp.atomic_add(loss, 0, wp.dot(d, d) + 0.3 * wp.dot(vel[i], vel[i]))


@wp.kernel
def effort(spin: wp.array2d(dtype=wp.vec3), price: float, loss: wp.array(dtype=float)):
    t, i = wp.tid()
    wp.atomic_add(loss, 0, price * wp.dot(spin[t, i], spin[t, i]))

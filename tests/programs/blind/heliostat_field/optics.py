"""Geometry of flat mirrors in front of a tower."""
import warp as wp


@wp.struct
class Tower:
    sun: wp.vec3
    aim: wp.vec3
    plane_y: float
    spread: float


@wp.kernel
def turn(tilt: wp.array(dtype=wp.vec2), rest: wp.array(dtype=wp.quat), normal: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    yaw = wp.quat_from_axis_angle(wp.vec3(0.0, 0.0, 1.0), tilt[i][0])
    pitch = wp.quat_from_axis_angle(wp.vec3(1.0, 0.0, 0.0), tilt[i][1])
    normal[i] = wp.quat_rotate(rest[i], wp.quat_rotate(yaw * pitch, wp.vec3(0.0, 1.0, 0.0)))


@wp.kernel
def reflect(normal: wp.array(dtype=wp.vec3), tower: Tower, ray: wp.array(dtype=wp.vec3), power: wp.array(dtype=float)):
    i = wp.tid()
    c = wp.dot(normal[i], tower.sun)
    ray[i] = 2.0 * c * normal[i] - tower.sun
    power[i] = c


@wp.kernel
def land(site: wp.array(dtype=wp.vec3), ray: wp.array(dtype=wp.vec3), tower: Tower, spot: wp.array(dtype=wp.vec2)):
    i = wp.tid()
    s = (tower.plane_y - site[i][1]) / ray[i][1]
    p = site[i] + s * ray[i]
    spot[i] = wp.vec2(p[0] - tower.aim[0], p[2] - tower.aim[2])


@wp.kernel
def intercept(spot: wp.array(dtype=wp.vec2), power: wp.array(dtype=float), tower: Tower, loss: wp.array(dtype=float)):
    i = wp.tid()
    r2 = wp.dot(spot[i], spot[i])
    wp.atomic_add(loss, 0, -power[i] / (1.0 + r2 / (tower.spread * tower.spread)))

"""Planar two-body dynamics with a small thruster (double precision)."""

import warp as wp


@wp.kernel
def kick_drift(
    pos: wp.array(dtype=wp.vec2d),
    vel: wp.array(dtype=wp.vec2d),
    thrust: wp.array(dtype=wp.vec2d),
    k: int,
    burn: int,
    dt: wp.float64,
    pos_out: wp.array(dtype=wp.vec2d),
    vel_out: wp.array(dtype=wp.vec2d),
):
    i = wp.tid()
    r = pos[i]
    d = wp.length(r)
    acc = -r / (d * d * d) + thrust[k / burn]
    v = vel[i] + acc * dt
    vel_out[i] = v
    pos_out[i] = r + v * dt


@wp.kernel
def arrival(
    pos: wp.array(dtype=wp.vec2d),
    vel: wp.array(dtype=wp.vec2d),
    target_pos: wp.vec2d,
    target_vel: wp.vec2d,
    loss: wp.array(dtype=wp.float64),
):
    dp = pos[0] - target_pos
    dv = vel[0] - target_vel
    loss[0] = wp.dot(dp, dp) + wp.float64(0.5) * wp.dot(dv, dv)


@wp.kernel
def take_step(u: wp.array(dtype=wp.vec2d), g: wp.array(dtype=wp.vec2d), rate: wp.float64):
    i = wp.tid()
    u[i] = u[i] - rate * g[i]


class State:
    def __init__(self):
        self.pos = wp.zeros(1, dtype=wp.vec2d, requires_grad=True)
        self.vel = wp.zeros(1, dtype=wp.vec2d, requires_grad=True)

    def load(self, pos, vel):
        self.pos.assign([pos])
        self.vel.assign([vel])
        return self

    def snapshot(self):
        return self.pos.numpy()[0].copy(), self.vel.numpy()[0].copy()

"""Slew a satellite to a new attitude with receding-horizon control of its reaction wheels."""
import argparse

import numpy as np
import warp as wp

import dynamics as dyn
from controller import Controller


class Plant:
    """The real satellite: slightly different inertia and a steady disturbance; only its measured state is used."""

    def __init__(self, body, disturbance):
        self.body = body
        self.disturbance = wp.vec3(*disturbance)
        self.q = wp.array([[0.0, 0.0, 0.0, 1.0]] * 2, dtype=wp.quat)
        self.w = wp.array([[0.0, 0.02, -0.03]] * 2, dtype=wp.vec3)

    def fly(self, command):
        c = wp.array([command], dtype=wp.vec3)
        wp.launch(dyn.turn, 1, inputs=[self.body, self.q, self.w, c, 0, self.disturbance])
        for a in (self.q, self.w):
            now = a.numpy().copy()
            now[0] = now[1]
            a.assign(now)
        return self.q.numpy()[0], self.w.numpy()[0]


def make_body(inertia, limit=0.6, dt=0.1):
    b = dyn.Body()
    b.inertia = wp.vec3(*inertia)
    b.torque_limit = limit
    b.dt = dt
    return b


def target_attitude():
    return wp.quat_from_axis_angle(wp.normalize(wp.vec3(0.3, 1.0, -0.4)), 1.3)


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--ticks", type=int, default=40)
    ap.add_argument("--horizon", type=int, default=24)
    args = ap.parse_args()
    target = target_attitude()
    controller = Controller(make_body([1.0, 0.8, 0.6]), target, args.horizon)
    plant = Plant(make_body([1.05, 0.78, 0.62]), [0.004, -0.003, 0.002])
    q, w = plant.q.numpy()[0], plant.w.numpy()[0]
    for tick in range(args.ticks):
        command, value = controller.decide(q, w)
        q, w = plant.fly(command)
        if tick % 8 == 0:
            off = 2.0 * np.degrees(np.arccos(min(1.0, abs(float(np.dot(q, np.array(target)))))))
            print(f"tick {tick:3d}  plan cost {value:9.4f}  pointing error {off:7.2f} deg  |w| {np.linalg.norm(w):.4f}")


if __name__ == "__main__":
    main()

"""Fit twist, taper and sag of a tube to a scanned point cloud."""

import argparse

import numpy as np
import warp as wp
from warp.optim import SGD


@wp.func
def twist(p: wp.vec3, rate: float):
    a = rate * p[2]
    c = wp.cos(a)
    s = wp.sin(a)
    return wp.vec3(c * p[0] - s * p[1], s * p[0] + c * p[1], p[2])


@wp.func
def taper_and_sag(p: wp.vec3, taper: float, sag: float):
    q = wp.vec3(p[0], p[1], p[2])
    k = 1.0 + taper * p[2]
    q[0] = q[0] * k
    q[1] = q[1] * k
    q[1] = q[1] - sag * q[2] * q[2]
    return q


@wp.kernel
def deform(rest: wp.array(dtype=wp.vec3), shape: wp.array(dtype=float), out: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    p = taper_and_sag(rest[i], shape[1], shape[2])
    out[i] = twist(p, shape[0])


@wp.kernel
def distance(out: wp.array(dtype=wp.vec3), scan: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = out[i] - scan[i]
    wp.atomic_add(loss, 0, wp.dot(d, d) / float(out.shape[0]))


class TubeFit:
    def __init__(self, points, lr):
        rng = np.random.default_rng(6)
        phi = rng.uniform(0, 2 * np.pi, points)
        z = rng.uniform(0, 1.5, points)
        self.n = points
        self.rest = wp.array(np.stack([np.cos(phi), 0.5 * np.sin(phi), z], 1).astype(np.float32), dtype=wp.vec3, requires_grad=True)
        self.shape = wp.array([0.2, 0.1, 0.05], dtype=float, requires_grad=True)
        self.scan = wp.zeros(points, dtype=wp.vec3)
        truth = wp.array([0.6, -0.25, 0.2], dtype=float)
        wp.launch(deform, dim=points, inputs=[self.rest, truth], outputs=[self.scan])
        self.opt = SGD([self.shape], lr=lr)

    def iterate(self):
        out = wp.zeros(self.n, dtype=wp.vec3, requires_grad=True)
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            wp.launch(deform, dim=self.n, inputs=[self.rest, self.shape], outputs=[out])
            wp.launch(distance, dim=self.n, inputs=[out, self.scan], outputs=[self.loss])
        tape.backward(self.loss)
        self.update()
        tape.zero()
        return float(self.loss.numpy()[0])

    def update(self):
        self.opt.step([self.shape.grad])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--points", type=int, default=200)
    ap.add_argument("--lr", type=float, default=0.2)
    cfg = ap.parse_args()
    fit = TubeFit(cfg.points, cfg.lr)
    for it in range(10):
        print(f"{it} distance {fit.iterate():.6f} shape {np.round(fit.shape.numpy(), 4)}")


if __name__ == "__main__":
    main()

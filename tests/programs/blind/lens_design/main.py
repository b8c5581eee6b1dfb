"""Paraxial-plus lens design: curvatures and air gaps of a triplet are fitted so that a fan of
rays meets in one point."""

from dataclasses import dataclass

import numpy as np
import warp as wp


@dataclass
class Settings:
    rays: int = 48
    iterations: int = 9
    max_norm: float = 4.0
    lr_curv: float = 0.008
    lr_gap: float = 0.05


@wp.func
def bend(h: float, u: float, c: float, power: float):
    s = c * h
    return u - power * s * (1.0 + 0.5 * s * s)


@wp.kernel
def trace(
    heights: wp.array(dtype=float),
    curv: wp.array(dtype=float),
    gap: wp.array(dtype=float),
    power: wp.array(dtype=float),
    screen: float,
    hit: wp.array(dtype=float),
):
    i = wp.tid()
    h = heights[i]
    u = float(0.0)
    for k in range(3):
        u = bend(h, u, curv[k], power[k])
        h = h + gap[k] * u
    hit[i] = h + (screen - gap[0] - gap[1] - gap[2]) * u


@wp.kernel
def spot_size(hit: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, hit[i] * hit[i] / float(hit.shape[0]))


@wp.kernel
def move(p: wp.array(dtype=float), g: wp.array(dtype=float), lr: float):
    i = wp.tid()
    p[i] = p[i] - lr * g[i]


class Designer:
    def __init__(self, cfg: Settings):
        self.cfg = cfg
        self.heights = wp.array(np.linspace(-1.0, 1.0, cfg.rays), dtype=float)
        self.power = wp.array([1.0, -0.6, 1.0], dtype=float)
        self.curv = wp.array([0.25, 0.1, 0.2], dtype=float, requires_grad=True)
        self.gap = wp.array([0.4, 0.3, 0.5], dtype=float, requires_grad=True)
        self.hit = wp.zeros(cfg.rays, dtype=float, requires_grad=True)
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
        self.tape = wp.Tape()
        self.clipped = {}

    def clip(self):
        for name, p in (("curv", self.curv), ("gap", self.gap)):
            g = p.grad.numpy().copy()
            norm = float(np.linalg.norm(g))
            if norm > self.cfg.max_norm:
                g *= self.cfg.max_norm / norm
            self.clipped[name] = wp.array(g, dtype=float)

    def gradient(self):
        self.clip()
        self.tape.zero()
        self.tape.reset()
        self.loss.zero_()
        with self.tape:
            wp.launch(
                trace,
                dim=self.cfg.rays,
                inputs=[self.heights, self.curv, self.gap, self.power, 4.0],
                outputs=[self.hit],
            )
            wp.launch(spot_size, dim=self.cfg.rays, inputs=[self.hit], outputs=[self.loss])
        self.tape.backward(self.loss)

    def update(self):
        wp.launch(move, dim=3, inputs=[self.curv, self.clipped["curv"], self.cfg.lr_curv])
        wp.launch(move, dim=3, inputs=[self.gap, self.clipped["gap"], self.cfg.lr_gap])

    def iterate(self):
        self.gradient()
        self.update()
        return float(self.loss.numpy()[0])


def main():
    cfg = Settings()
    designer = Designer(cfg)
    for it in range(cfg.iterations):
        spot = designer.iterate()
        print(f"{it:2d} spot {spot:.6f} c {designer.curv.numpy()} g {designer.gap.numpy()}")


if __name__ == "__main__":
    main()

"""Softened N-body system with symplectic Euler time stepping."""

from dataclasses import dataclass

import numpy as np
import warp as wp


@dataclass
class ClusterConfig:
    stars: int = 12
    steps: int = 25
    dt: float = 0.04
    softening: float = 0.25
    seed: int = 3


@wp.kernel
def pair_forces(x: wp.array(dtype=wp.vec3), mass: wp.array(dtype=float), soft2: float, force: wp.array(dtype=wp.vec3)):
    i, j = wp.tid()
    if j > i:
        d = x[j] - x[i]
        r2 = wp.dot(d, d) + soft2
        f = mass[i] * mass[j] * d / (r2 * wp.sqrt(r2))
        wp.atomic_add(force, i, f)
        wp.atomic_sub(force, j, f)


@wp.kernel
def integrate(
    x: wp.array(dtype=wp.vec3),
    v: wp.array(dtype=wp.vec3),
    mass: wp.array(dtype=float),
    force: wp.array(dtype=wp.vec3),
    dt: float,
    x_out: wp.array(dtype=wp.vec3),
    v_out: wp.array(dtype=wp.vec3),
):
    i = wp.tid()
    vn = v[i] + force[i] / mass[i] * dt
    v_out[i] = vn
    x_out[i] = x[i] + vn * dt


class Cluster:
    def __init__(self, cfg: ClusterConfig):
        self.cfg = cfg
        rng = np.random.default_rng(cfg.seed)
        self.x0 = rng.normal(0.0, 1.0, (cfg.stars, 3)).astype(np.float32)
        self.v0 = rng.normal(0.0, 0.25, (cfg.stars, 3)).astype(np.float32)
        self.xs = [wp.zeros(cfg.stars, dtype=wp.vec3, requires_grad=True) for _ in range(cfg.steps + 1)]
        self.vs = [wp.zeros(cfg.stars, dtype=wp.vec3, requires_grad=True) for _ in range(cfg.steps + 1)]
        self.force = wp.zeros(cfg.stars, dtype=wp.vec3, requires_grad=True)

    def evolve(self, mass):
        c = self.cfg
        self.xs[0].assign(self.x0)
        self.vs[0].assign(self.v0)
        for s in range(c.steps):
            self.force.zero_()
            wp.launch(pair_forces, dim=(c.stars, c.stars), inputs=[self.xs[s], mass, c.softening**2], outputs=[self.force])
            wp.launch(
                integrate,
                dim=c.stars,
                inputs=[self.xs[s], self.vs[s], mass, self.force, c.dt],
                outputs=[self.xs[s + 1], self.vs[s + 1]],
            )
        return self.xs[-1]

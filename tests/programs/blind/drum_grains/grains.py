"""Soft discs in a box; the force buffer is cleared by a kernel before each step."""

import numpy as np
import warp as wp


@wp.kernel
def clear(force: wp.array(dtype=wp.vec2)):
    i = wp.tid()
    force[i] = wp.vec2(0.0, 0.0)


@wp.kernel
def contacts(x: wp.array(dtype=wp.vec2), stiff: wp.array(dtype=float), radius: float, force: wp.array(dtype=wp.vec2)):
    i, j = wp.tid()
    if i != j:
        d = x[i] - x[j]
        l = wp.length(d)
        gap = 2.0 * radius - l
        if gap > 0.0:
            wp.atomic_add(force, i, stiff[0] * gap * d / l)


@wp.kernel
def move(
    x: wp.array(dtype=wp.vec2), v: wp.array(dtype=wp.vec2), force: wp.array(dtype=wp.vec2), drag: wp.array(dtype=float), dt: float,
    x1: wp.array(dtype=wp.vec2), v1: wp.array(dtype=wp.vec2),
):
    i = wp.tid()
    f = force[i] - drag[0] * v[i] - 6.0 * x[i]
    w = v[i] + dt * f
    v1[i] = w
    x1[i] = x[i] + dt * w


class Grains:
    def __init__(self, n=16, steps=30):
        self.n, self.steps = n, steps
        rng = np.random.default_rng(5)
        g = np.stack(np.meshgrid(np.arange(4), np.arange(4)), -1).reshape(-1, 2) * 0.33 - 0.5
        self.x0 = (g + rng.normal(0, 0.02, (n, 2))).astype(np.float32)
        self.force = wp.zeros(n, dtype=wp.vec2, requires_grad=True)

    def vec(self):
        return wp.zeros(self.n, dtype=wp.vec2, requires_grad=True)

    def settle(self, stiff, drag):
        x, v = wp.array(self.x0, dtype=wp.vec2, requires_grad=True), self.vec()
        for _ in range(self.steps):
            x1, v1 = self.vec(), self.vec()
            wp.launch(clear, dim=self.n, outputs=[self.force])
            wp.launch(contacts, dim=(self.n, self.n), inputs=[x, stiff, 0.19], outputs=[self.force])
            wp.launch(move, dim=self.n, inputs=[x, v, self.force, drag, 0.03], outputs=[x1, v1])
            x, v = x1, v1
        return x

"""Identify vibration mode amplitudes of a clamped plate from optical maps of principal strain."""

from dataclasses import dataclass

import numpy as np
import warp as wp


@dataclass
class Setup:
    n: int = 20
    iterations: int = 10
    lr: float = 0.4


@wp.kernel
def displacement(amp: wp.array(dtype=float), shapes: wp.array(ndim=3, dtype=wp.vec2), u: wp.array2d(dtype=wp.vec2)):
    i, j = wp.tid()
    s = wp.vec2(0.0, 0.0)
    for m in range(3):
        s += amp[m] * shapes[m, i, j]
    u[i, j] = s


@wp.kernel
def principal(u: wp.array2d(dtype=wp.vec2), h: float, out: wp.array2d(dtype=float)):
    i, j = wp.tid()
    dx = (u[i + 1, j] - u[i, j]) / h
    dy = (u[i, j + 1] - u[i, j]) / h
    mean = 0.5 * (dx[0] + dy[1])
    half = 0.5 * (dx[0] - dy[1])
    shear = 0.5 * (dx[1] + dy[0])
    out[i, j] = mean + wp.sqrt(half * half + shear * shear)


@wp.kernel
def map_error(strain: wp.array2d(dtype=float), seen: wp.array2d(dtype=float), loss: wp.array(dtype=float)):
    i, j = wp.tid()
    d = strain[i, j] - seen[i, j]
    wp.atomic_add(loss, 0, d * d / float(seen.shape[0] * seen.shape[1]))


@wp.kernel
def careful_step(p: wp.array(dtype=float), g: wp.array(dtype=float), lr: float):
    i = wp.tid()
    step = lr * g[i]
    if wp.isnan(step):
        step = 0.0
    p[i] = p[i] - wp.clamp(step, -0.1, 0.1)


class Plate:
    def __init__(self, cfg):
        self.cfg, n = cfg, cfg.n
        x = np.linspace(0.0, 1.0, n + 1)
        xx, yy = np.meshgrid(x, x, indexing="ij")
        free = np.clip(xx - 0.1, 0.0, None) ** 2
        shapes = np.zeros((3, n + 1, n + 1, 2))
        shapes[0, :, :, 0] = free
        shapes[1, :, :, 1] = free * np.sin(np.pi * yy)
        shapes[2, :, :, 0] = free * yy
        self.shapes = wp.array(shapes.astype(np.float32), dtype=wp.vec2)
        self.amp = wp.array([0.4, 0.2, 0.1], dtype=float, requires_grad=True)
        self.seen = wp.array(self.strain(wp.array([0.7, 0.5, -0.2], dtype=float)).numpy(), dtype=float)

    def strain(self, amp):
        n = self.cfg.n
        u = wp.zeros((n + 1, n + 1), dtype=wp.vec2, requires_grad=True)
        out = wp.zeros((n, n), dtype=float, requires_grad=True)
        wp.launch(displacement, dim=u.shape, inputs=[amp, self.shapes], outputs=[u])
        wp.launch(principal, dim=(n, n), inputs=[u, 1.0 / n], outputs=[out])
        return out

    def iterate(self):
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            strain = self.strain(self.amp)
            wp.launch(map_error, dim=strain.shape, inputs=[strain, self.seen], outputs=[self.loss])
        tape.backward(self.loss)
        self.step()
        tape.zero()
        return float(self.loss.numpy()[0])

    def step(self):
        wp.launch(careful_step, dim=3, inputs=[self.amp, self.amp.grad, self.cfg.lr])


def main():
    plate = Plate(Setup())
    for it in range(plate.cfg.iterations):
        print(f"{it} error {plate.iterate():.6f} amplitudes {np.round(plate.amp.numpy(), 4)}")


if __name__ == "__main__":
    main()

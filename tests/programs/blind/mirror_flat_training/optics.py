"""Deformable mirror with Gaussian influence functions, Kolmogorov-like screens and a smooth Strehl-type merit."""
import numpy as np
import warp as wp


@wp.kernel
def mirror_phase(
    command: wp.array(dtype=float),
    where: wp.array(dtype=wp.vec2),
    pixel: wp.array(dtype=wp.vec2),
    width: float,
    stroke: float,
    phase: wp.array(dtype=float),
):
    i = wp.tid()
    s = float(0.0)
    for a in range(wp.static(25)):
        d = pixel[i] - where[a]
        s += stroke * wp.tanh(command[a] / stroke) * wp.exp(-wp.dot(d, d) / (width * width))
    phase[i] = s


@wp.kernel
def focal_field(
    phase: wp.array(dtype=float),
    screen: wp.array(dtype=float),
    re: wp.array(dtype=float),
    im: wp.array(dtype=float),
):
    i = wp.tid()
    total = phase[i] + screen[i]
    n = float(phase.shape[0])
    wp.atomic_add(re, 0, wp.cos(total) / n)
    wp.atomic_add(im, 0, wp.sin(total) / n)


@wp.kernel
def lost_light(re: wp.array(dtype=float), im: wp.array(dtype=float), weight: float, merit: wp.array(dtype=float)):
    wp.atomic_add(merit, 0, weight * (1.0 - re[0] * re[0] - im[0] * im[0]))


class Pupil:
    def __init__(self, across=18):
        g = np.stack(np.meshgrid(*[np.linspace(-1, 1, across)] * 2, indexing="ij"), -1).reshape(-1, 2)
        self.xy = g[np.hypot(*g.T) <= 1.0]
        a = np.linspace(-0.9, 0.9, 5)
        self.actuators = np.stack(np.meshgrid(a, a, indexing="ij"), -1).reshape(-1, 2)
        x, y = self.xy.T
        self.static = 0.9 * (x * x - y * y) + 0.7 * x * y + 0.6 * (3 * (x * x + y * y) - 2) * x

    def screen(self, seed, strength):
        """Static aberration of the bench plus a random low-order part."""
        rng = np.random.default_rng(seed)
        x, y = self.xy.T
        modes = [x, y, x * y, x * x - y * y, x * x + y * y - 0.5, x**3, y**3, x * x * y, x * y * y]
        c = rng.normal(0.0, strength, len(modes))
        return self.static + sum(ci * m for ci, m in zip(c, modes))

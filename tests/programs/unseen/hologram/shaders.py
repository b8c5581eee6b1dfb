"""Kernels of the hologram."""

import warp as wp

from optics import fringe, polish


@wp.kernel
def illuminate(phase: wp.array(dtype=wp.vec3), k: float, screen: wp.array(dtype=float)):
    i = wp.tid()
    v = polish(phase[i], k)
    screen[i] = fringe(v, 4) + v[1]


@wp.kernel
def contrast(screen: wp.array(dtype=float), image: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = screen[i] - image[i]
    wp.atomic_add(loss, 0, d * d / float(screen.shape[0]))

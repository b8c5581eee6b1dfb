"""Estimate lamp vectors and ambient light from one auto-exposed photograph."""

import logging

import numpy as np
import warp as wp
from warp.optim import Adam

from camera import Camera, photo_error

log = logging.getLogger("relight")


class Relighting:
    def __init__(self, size=24):
        self.cam = Camera(size)
        lamps = wp.array([[0.6, 0.2, 0.5], [-0.3, 0.5, 0.2]], dtype=wp.vec3)
        self.photo = wp.array(self.cam.take(lamps, wp.array([0.15], dtype=float)).numpy(), dtype=float)
        self.lamp = wp.array([[0.4, 0.0, 0.5], [0.0, 0.3, 0.4]], dtype=wp.vec3, requires_grad=True)
        self.ambient = wp.array([0.3], dtype=float, requires_grad=True)
        self.opt = Adam([self.lamp, self.ambient], lr=0.03)

    def step(self):
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            picture = self.cam.take(self.lamp, self.ambient)
            wp.launch(photo_error, dim=picture.shape, inputs=[picture, self.photo], outputs=[self.loss])
        tape.backward(self.loss)
        self.apply()
        tape.zero()
        return float(self.loss.numpy()[0])

    def apply(self):
        self.opt.step([self.lamp.grad, self.ambient.grad])


def main():
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    job = Relighting()
    for it in range(10):
        value = job.step()
        log.info("%d loss %.5f lamps %s ambient %.4f", it, value, np.round(job.lamp.numpy(), 3).tolist(), job.ambient.numpy()[0])


if __name__ == "__main__":
    main()

"""Calibrate stiffness and drag of a small grain packing."""

import numpy as np
import warp as wp

from grains import Grains


@wp.kernel
def packing_error(x: wp.array(dtype=wp.vec2), seen: wp.array(dtype=wp.vec2), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = x[i] - seen[i]
    wp.atomic_add(loss, 0, 100.0 * wp.dot(d, d) / float(x.shape[0]))


class Calibration:
    def __init__(self):
        self.grains = Grains()
        self.seen = wp.array(self.grains.settle(wp.array([70.0], dtype=float), wp.array([1.4], dtype=float)).numpy(), dtype=wp.vec2)
        self.stiff = wp.array([40.0], dtype=float, requires_grad=True)
        self.drag = wp.array([2.5], dtype=float, requires_grad=True)
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
        self.tape = wp.Tape()

    def iterate(self):
        self.tape.reset()
        self.loss.zero_()
        with self.tape:
            x = self.grains.settle(self.stiff, self.drag)
            wp.launch(packing_error, dim=self.grains.n, inputs=[x, self.seen], outputs=[self.loss])
        self.tape.backward(self.loss)
        self.update(self.stiff.grad.numpy().copy(), self.drag.grad.numpy().copy())
        self.tape.zero()
        return float(self.loss.numpy()[0])

    def update(self, gs, gd):
        self.stiff.assign(self.stiff.numpy() - np.clip(400.0 * gs, -5.0, 5.0))
        self.drag.assign(self.drag.numpy() - np.clip(0.5 * gd, -0.2, 0.2))


def main():
    cal = Calibration()
    for it in range(8):
        print(f"{it} error {cal.iterate():.6f} stiffness {cal.stiff.numpy()[0]:.3f} drag {cal.drag.numpy()[0]:.4f}")


if __name__ == "__main__":
    main()

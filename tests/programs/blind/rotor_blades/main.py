"""Improve twist and chord of a wind turbine blade over two wind speeds."""

import logging

import numpy as np
import warp as wp
from warp.optim import SGD

from rotor.blade import Blade, score
from rotor.polars import Polar

log = logging.getLogger("rotor")


class Design:
    def __init__(self):
        self.blade, self.polar = Blade(), Polar()
        self.opt_twist = SGD([self.blade.twist], lr=0.05)
        self.opt_chord = SGD([self.blade.chord], lr=0.002)

    def iterate(self):
        b = self.blade
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            for wind, omega in ((1.0, 4.0), (1.3, 5.0)):
                totals = b.totals(self.polar, wind, omega)
                wp.launch(score, dim=b.n, inputs=[totals, b.twist, b.chord], outputs=[self.loss])
        tape.backward(self.loss)
        self.update()
        tape.zero()
        return float(self.loss.numpy()[0])

    def update(self):
        self.opt_twist.step([self.blade.twist.grad])
        self.opt_chord.step([self.blade.chord.grad])


def main():
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    design = Design()
    for it in range(8):
        log.info("%d objective %.6f", it, design.iterate())
    log.info("twist %s chord %s", np.round(design.blade.twist.numpy(), 3), np.round(design.blade.chord.numpy(), 3))


if __name__ == "__main__":
    main()

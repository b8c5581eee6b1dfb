"""Fit conductivity law and heater settings of an annealing furnace to a measured profile."""

import argparse

import numpy as np
import warp as wp

from furnace.solver import Rod, profile_error


@wp.kernel
def descend(p: wp.array(dtype=float), g: wp.array(dtype=float), rate: float, lo: float):
    i = wp.tid()
    p[i] = wp.max(p[i] - rate * g[i], lo)


class Fit:
    def __init__(self, rod, wanted, rate):
        self.rod, self.wanted, self.rate = rod, wanted, rate
        self.law = wp.array([0.25, 1.2], dtype=float, requires_grad=True)
        self.heater = wp.array([0.6, 0.6, 0.6, 0.6], dtype=float, requires_grad=True)
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)

    def iteration(self):
        self.loss.zero_()
        tape = wp.Tape()
        with tape:
            final = self.rod.run(self.law, self.heater)
            wp.launch(profile_error, dim=self.rod.cells, inputs=[final, self.wanted], outputs=[self.loss])
        tape.backward(self.loss)
        self.update()
        tape.zero()
        return float(self.loss.numpy()[0])

    def update(self):
        wp.launch(descend, dim=2, inputs=[self.law, self.law.grad, self.rate, 0.02])
        wp.launch(descend, dim=4, inputs=[self.heater, self.heater.grad, 8.0 * self.rate, 0.0])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--iterations", type=int, default=8)
    ap.add_argument("--steps", type=int, default=60)
    ap.add_argument("--rate", type=float, default=0.05)
    cfg = ap.parse_args()

    rod = Rod(cells=32, steps=cfg.steps, dt=0.03)
    x = (np.arange(32) + 0.5) / 32
    wanted = wp.array((0.75 + 0.25 * np.sin(2.0 * np.pi * x)).astype(np.float32), dtype=float)
    fit = Fit(rod, wanted, cfg.rate)
    for it in range(cfg.iterations):
        value = fit.iteration()
        print(f"iter {it:2d}  loss {value:.6f}  law {fit.law.numpy()}  heater {fit.heater.numpy()}")


if __name__ == "__main__":
    main()

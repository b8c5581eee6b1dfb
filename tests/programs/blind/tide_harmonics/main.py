"""Fit tidal constituents at sea and the mouth of a lagoon to the gauge inside the lagoon."""
import numpy as np
import warp as wp

import basin

SPEED = np.array([0.5059, 0.5236, 0.2625, 0.2434], dtype=np.float32)


class LagoonFit:
    def __init__(self, steps=160, dt=0.5):
        self.steps, self.dt = steps, dt
        self.speed = wp.array(SPEED, dtype=float)
        true = dict(amp=[0.9, 0.4, 0.2, 0.15], phase=[0.5, 1.2, 0.3, 2.0], mouth=[0.8, 0.5])
        first = dict(amp=[0.6, 0.2, 0.3, 0.3], phase=[0.2, 0.9, 0.6, 1.7], mouth=[0.4, 0.35])
        self.seen = self.simulate({k: wp.array(v, dtype=float, requires_grad=True) for k, v in true.items()})
        self.seen = wp.array(self.seen.numpy()[1:, 0].copy(), dtype=float)
        self.params = {k: wp.array(v, dtype=float, requires_grad=True) for k, v in first.items()}
        self.rates = dict(amp=0.2, phase=0.3, mouth=0.06)

    def simulate(self, p):
        sea = wp.zeros(self.steps, dtype=float, requires_grad=True)
        level = wp.zeros((self.steps + 1, 2), dtype=float, requires_grad=True)
        wp.launch(basin.elevation, dim=self.steps, inputs=[p["amp"], p["phase"], self.speed, self.dt], outputs=[sea])
        for t in range(self.steps):
            wp.launch(basin.fill, dim=1, inputs=[sea, p["mouth"], level, t, self.dt])
        return level

    def slopes(self):
        misfit = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            level = self.simulate(self.params)
            wp.launch(basin.gauge, dim=self.steps, inputs=[level[1:], self.seen, 1.0 / self.steps], outputs=[misfit])
        tape.backward(misfit)
        g = {k: p.grad.numpy() for k, p in self.params.items()}
        g["mouth"] = g["mouth"] * self.params["mouth"].numpy()
        tape.zero()
        return float(misfit.numpy()[0]), g

    def iterate(self):
        misfit, g = self.slopes()
        for k, p in self.params.items():
            move = -self.rates[k] * g[k]
            p.assign(p.numpy() * np.exp(move) if k == "mouth" else p.numpy() + move)
        return misfit


def main():
    fit = LagoonFit()
    for it in range(12):
        misfit = fit.iterate()
        print(f"{it:2d} misfit {misfit:.6f} mouth {fit.params['mouth'].numpy().round(4)} amp {fit.params['amp'].numpy().round(3)}")


if __name__ == "__main__":
    main()

"""4D-Var on Lorenz-96: initial state and forcing from observations of every second variable."""
import argparse

import numpy as np
import warp as wp

import lorenz


class Assimilation:
    def __init__(self, days, dt=0.02):
        self.dt, self.steps = dt, int(days * 0.2 / dt)
        self.every = 10
        rng = np.random.default_rng(12)
        truth = 8.0 + rng.normal(size=24)
        self.seen = None
        path = self.forecast(self.vector(truth), self.vector([8.0]))
        rows = np.stack([x.numpy()[::2] for x in path[self.every :: self.every]])
        self.seen = wp.array(rows + 0.05 * rng.normal(size=rows.shape), dtype=wp.float64)
        self.x0 = self.vector(truth + 0.3 * rng.normal(size=24))
        self.forcing = self.vector([7.6])

    @staticmethod
    def vector(v):
        return wp.array(np.asarray(v, dtype=np.float64), dtype=wp.float64, requires_grad=True)

    def forecast(self, x, forcing):
        path = [x]
        for _ in range(self.steps):
            mid, nxt = wp.zeros_like(x), wp.zeros_like(x)
            wp.launch(lorenz.half, dim=24, inputs=[path[-1], forcing, self.dt], outputs=[mid])
            wp.launch(lorenz.whole, dim=24, inputs=[path[-1], mid, forcing, self.dt], outputs=[nxt])
            path.append(nxt)
        return path

    def cost(self):
        total = wp.zeros(1, dtype=wp.float64, requires_grad=True)
        path = self.forecast(self.x0, self.forcing)
        rows = self.seen.shape[0]
        for r in range(rows):
            x = path[(r + 1) * self.every]
            wp.launch(lorenz.departure, dim=12, inputs=[x, self.seen, r, 1.0 / (12 * rows)], outputs=[total])
        return total

    def iterate(self, rate):
        tape = wp.Tape()
        with tape:
            total = self.cost()
        tape.backward(total)
        gx, gf = self.x0.grad.numpy().copy(), self.forcing.grad.numpy().copy()
        tape.zero()
        size = np.sqrt((gx**2).sum() + (gf**2).sum())
        self.x0.assign(self.x0.numpy() - rate * gx / size)
        self.forcing.assign(self.forcing.numpy() - rate * gf / size)
        return total.numpy()[0], size


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--days", type=float, default=60.0, help="length of the assimilation window")
    ap.add_argument("--rate", type=float, default=0.05)
    a = ap.parse_args()
    job = Assimilation(a.days)
    for it in range(6):
        value, size = job.iterate(a.rate)
        print(f"{it} cost {value:.5f} |gradient| {size:.4g} forcing {job.forcing.numpy()[0]:.4f}")

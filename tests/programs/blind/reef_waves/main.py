"""Infer two coral heads (height, place, width) from three wave buoys."""
import numpy as np
import warp as wp

import waves


class Ring:
    """States of one run, used again by the next."""

    def __init__(self, steps, n):
        alloc = lambda: [wp.zeros(n, dtype=wp.float64, requires_grad=True) for _ in range(steps + 1)]
        self.eta, self.flow = alloc(), alloc()
        self.slots = steps + 1

    def at(self, t):
        k = t % self.slots
        return self.eta[k], self.flow[k]

    def calm(self):
        self.eta[0].zero_()
        self.flow[0].zero_()


class ReefSurvey:
    def __init__(self, n=60, steps=120):
        self.n, self.steps, self.dx, self.dt = n, steps, 0.25, 0.12
        t = np.arange(steps) * self.dt
        self.paddle = wp.array(0.2 * np.sin(1.3 * t) * np.minimum(1.0, t), dtype=wp.float64)
        self.buoys = wp.array([18, 35, 50], dtype=int)
        self.ring = Ring(steps, n)
        self.misfit = wp.zeros(1, dtype=wp.float64, requires_grad=True)
        self.seen = wp.zeros((steps, 3), dtype=wp.float64)
        self.reef = wp.array([0.5, 5.0, 1.0, 0.4, 10.0, 1.2], dtype=wp.float64, requires_grad=True)
        rows = []
        self.run(lambda t, eta: rows.append(eta.numpy()[[18, 35, 50]]))
        self.seen.assign(np.array(rows))
        self.reef.assign(np.array([0.3, 5.4, 1.3, 0.3, 9.4, 1.0]))
        self.rate = np.array([4.0, 20.0, 20.0, 4.0, 20.0, 20.0])

    def run(self, look):
        self.ring.calm()
        for t in range(self.steps):
            eta, flow = self.ring.at(t)
            eta_next, flow_next = self.ring.at(t + 1)
            wp.launch(waves.spread, dim=self.n, inputs=[self.reef, eta, flow, self.paddle, t, self.dt, self.dx], outputs=[flow_next])
            wp.launch(waves.level, dim=self.n, inputs=[self.reef, eta, flow_next, self.dt, self.dx], outputs=[eta_next])
            look(t, eta_next)

    def compare(self, t, eta):
        wp.launch(waves.record, dim=3, inputs=[eta, self.buoys, self.seen, t, 100.0 / self.steps], outputs=[self.misfit])

    def iterate(self):
        self.misfit.zero_()
        with wp.Tape() as tape:
            self.run(self.compare)
        tape.backward(self.misfit)
        g = self.reef.grad.numpy()
        move = np.clip(-0.01 * self.rate * g, -0.05, 0.05)
        self.reef.assign(self.reef.numpy() + move)
        tape.zero()
        return self.misfit.numpy()[0]


if __name__ == "__main__":
    survey = ReefSurvey()
    for it in range(10):
        value = survey.iterate()
        print(f"{it} misfit {value:.6f} reef {survey.reef.numpy().round(3)}")

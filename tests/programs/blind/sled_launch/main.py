"""Throttle schedule of a rocket sled that has to stop at a mark with cool shoes."""
import numpy as np
import warp as wp

import sled
from reverse import Bisection


class Launch:
    def __init__(self, steps=90):
        self.steps, self.dt, self.goal = steps, 0.05, 5.0
        self.track = sled.Track()
        self.track.drag, self.track.rub, self.track.bump, self.track.cooling = 0.12, 0.5, 0.4, 0.3
        t = np.linspace(0.0, 1.0, steps)
        self.throttle = wp.array((1.0 - 2.0 * t).astype(np.float32), dtype=float, requires_grad=True)
        self.mean = np.zeros(steps)
        self.square = np.zeros(steps)
        self.count = 0

    def step(self, state, t, out):
        wp.launch(sled.move, dim=1, inputs=[state, self.throttle, self.track, t, self.dt], outputs=[out])

    def heat(self, state, cost):
        wp.launch(sled.strain, dim=1, inputs=[state, 2.0 / self.steps], outputs=[cost])

    def iterate(self):
        start = wp.array([[0.0, 0.5, 0.0, 1.5]], dtype=wp.vec4, requires_grad=True)
        plan = Bisection(self.step, self.heat, leaf=8)
        end = plan.forward(start, 0, self.steps)
        end_cost = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            wp.launch(sled.arrive, dim=1, inputs=[end, self.goal], outputs=[end_cost])
        tape.backward(end_cost)
        _, running = plan.sweep(start, 0, self.steps, wp.clone(end.grad))
        self.adam(self.throttle.grad.numpy())
        self.throttle.grad.zero_()
        return float(end_cost.numpy()[0]) + running, end.numpy()[0]

    def adam(self, g):
        self.count += 1
        self.mean = 0.8 * self.mean + 0.2 * g
        self.square = 0.95 * self.square + 0.05 * g * g
        m, v = self.mean / (1 - 0.8**self.count), self.square / (1 - 0.95**self.count)
        self.throttle.assign((self.throttle.numpy() - 0.15 * m / (np.sqrt(v) + 1e-8)).astype(np.float32))


def main():
    job = Launch()
    for it in range(10):
        cost, end = job.iterate()
        print(f"{it} cost {cost:.5f} stop {end[0]:.3f} speed {end[1]:.3f} heat {end[2]:.3f} fuel {end[3]:.3f}")


if __name__ == "__main__":
    main()

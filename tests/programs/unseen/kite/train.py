import numpy as np
import warp as wp

import physics


class Kite:
    def __init__(self, links=4, ticks=24, dt=0.05):
        self.links, self.ticks, self.dt = links, ticks, dt
        n = links + 1
        start = np.zeros((n, 3), dtype=np.float32)
        start[:, 0] = 0.1 * np.arange(n)
        start[:, 2] = 0.25 * np.arange(n)
        make = lambda: wp.zeros(n, dtype=wp.vec3, requires_grad=True)
        self.x = [wp.array(start, dtype=wp.vec3, requires_grad=True)] + [make() for _ in range(ticks)]
        self.v = [make() for _ in range(ticks + 1)]
        self.f = make()
        self.miss = wp.zeros(1, dtype=float, requires_grad=True)

    def fly(self, wind):
        n = self.links + 1
        for t in range(self.ticks):
            wp.launch(physics.blank, n, outputs=[self.f])
            wp.launch(physics.tether, self.links, inputs=[self.x[t], 0.25, 30.0], outputs=[self.f])
            wp.launch(physics.weather, n, inputs=[self.x[t], self.v[t], wind], outputs=[self.f])
            wp.launch(physics.symplectic, n, inputs=[self.x[t], self.v[t], self.f, self.dt], outputs=[self.x[t + 1], self.v[t + 1]])
        wp.launch(physics.seen_at, 1, inputs=[self.x[-1], wp.vec3(0.9, 0.2, 0.4)], outputs=[self.miss])


class Trainer:
    def __init__(self, rate):
        self.rate = rate
        self.kite = Kite()
        self.wind = wp.array([[1.0, 0.0, 0.1]], dtype=wp.vec3, requires_grad=True)

    def epoch(self):
        tape = wp.Tape()
        with tape:
            self.kite.fly(self.wind)
        tape.backward(loss=self.kite.miss)
        guess = self.wind.numpy() - self.rate * self.wind.grad.numpy()
        tape.zero()
        self.wind.assign(guess)
        return float(self.kite.miss.numpy()[0])

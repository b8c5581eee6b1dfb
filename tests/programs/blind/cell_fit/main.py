"""Fit cell parameters to a current pulse test: voltage trace plus temperature at three instants.
The sum of both parts is minimised."""

import numpy as np
import warp as wp

import ecm

NAMES = ("r0", "r1", "tau", "cooling")


class PulseTest:
    def __init__(self, steps=60, dt=1.0):
        self.steps, self.dt = steps, dt
        t = np.arange(steps)
        self.current = wp.array(np.where((t // 12) % 2 == 0, 4.0, 0.5).astype(np.float32), dtype=float)
        self.cell = self.make(0.03, 0.02, 12.0, 0.05)
        states, volt = self.simulate(self.make(0.04, 0.025, 9.0, 0.03))
        self.seen_v = wp.array(volt.numpy(), dtype=float)
        self.marks = (20, 40, steps)
        self.seen_t = [float(states[m].numpy()[0][2]) for m in self.marks]
        self.rates = dict(r0=3e-6, r1=2e-6, tau=0.5, cooling=1e-5)

    @staticmethod
    def make(*values):
        c = ecm.Circuit()
        for n, v in zip(NAMES, values):
            setattr(c, n, wp.array([v], dtype=float, requires_grad=True))
        return c

    def simulate(self, cell):
        volt = wp.zeros(self.steps, dtype=float, requires_grad=True)
        states = [wp.array([[0.9, 0.0, 0.0]], dtype=wp.vec3, requires_grad=True)]
        for t in range(self.steps):
            nxt = wp.zeros(1, dtype=wp.vec3, requires_grad=True)
            wp.launch(ecm.pulse, dim=1, inputs=[states[-1], cell, self.current, t, self.dt], outputs=[nxt, volt])
            states.append(nxt)
        return states, volt

    def iterate(self):
        v_err, t_err, self.objective = (wp.zeros(1, dtype=float, requires_grad=True) for _ in range(3))
        tape = wp.Tape()
        with tape:
            states, volt = self.simulate(self.cell)
            wp.launch(ecm.volt_error, dim=self.steps, inputs=[volt, self.seen_v, 1.0e4 / self.steps], outputs=[v_err])
            for m, seen in zip(self.marks, self.seen_t):
                wp.launch(ecm.temp_error, dim=1, inputs=[states[m], seen, 5.0], outputs=[t_err])
            wp.launch(ecm.total, dim=1, inputs=[v_err, t_err], outputs=[self.objective])
        tape.backward(v_err)
        self.descend({n: getattr(self.cell, n).grad.numpy().copy() for n in NAMES})
        tape.zero()
        return float(self.objective.numpy()[0])

    def descend(self, grads):
        for n, g in grads.items():
            p = getattr(self.cell, n)
            v = p.numpy()
            p.assign(v - np.clip(self.rates[n] * g, -0.05 * v, 0.05 * v))


def main():
    test = PulseTest()
    best = float("inf")
    for it in range(10):
        value = test.iterate()
        best = min(best, value)
        print(f"{it} objective {value:.5f} best {best:.5f} " + " ".join(f"{n}={getattr(test.cell, n).numpy()[0]:.5f}" for n in NAMES))


if __name__ == "__main__":
    main()

"""Objective and gradient for the optimiser."""
import numpy as np
import warp as wp


class Inversion:
    def __init__(self, exchanger):
        self.x = exchanger

    def value(self, log_k):
        self.x.forward(wp.array(log_k, dtype=float))
        return float(self.x.out.numpy()[0])

    def value_and_gradient(self, log_k):
        p = wp.array(log_k, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            self.x.forward(p)
        tape.backward(self.x.out)
        g = p.grad.numpy().astype(float)
        value = float(self.x.out.numpy()[0])
        tape.zero()
        return value, g

    def descend(self, log_k, iterations, rate, report=10):
        for it in range(iterations):
            value, g = self.value_and_gradient(log_k)
            if it % report == 0:
                print(f"{it:3d} objective {value:9.5f}  |g| {np.linalg.norm(g):8.5f}")
            log_k = log_k - rate * g
        return log_k

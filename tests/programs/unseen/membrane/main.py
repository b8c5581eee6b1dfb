"""Load on a membrane for a wanted shape; the equilibrium is relaxed."""
from dataclasses import dataclass, field

import numpy as np
import warp as wp


@dataclass
class Options:
    size: int = 24
    relax_iters: int = 12
    rate: float = 0.02
    rounds: int = 5
    extra: dict = field(default_factory=dict)


@wp.kernel
def relax(u: wp.array2d(dtype=float), load: wp.array2d(dtype=float), out: wp.array2d(dtype=float)):
    i, j = wp.tid()
    n = u.shape[0]
    if i == 0 or j == 0 or i == n - 1 or j == n - 1:
        out[i, j] = 0.0
        return
    out[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + load[i, j])


@wp.kernel
def shape_error(u: wp.array2d(dtype=float), goal: wp.array2d(dtype=float), loss: wp.array(dtype=float)):
    i, j = wp.tid()
    d = u[i, j] - goal[i, j]
    wp.atomic_add(loss, 0, d * d)


class Membrane:
    def __init__(self, opts):
        self.opts = opts
        n = opts.size
        a = np.sin(np.pi * np.arange(n) / (n - 1))
        self.goal = wp.array(np.outer(a, a), dtype=float)
        self.load = wp.full((n, n), 0.05, dtype=float, requires_grad=True)

    def equilibrium(self):
        n = self.opts.size
        u = wp.zeros((n, n), dtype=float, requires_grad=True)
        for _ in range(self.opts.relax_iters):
            new = wp.zeros((n, n), dtype=float, requires_grad=True)
            wp.launch(relax, (n, n), inputs=[u, self.load], outputs=[new])
            u = new
        return u

    def train(self):
        for r in range(self.opts.rounds):
            loss = wp.zeros(1, dtype=float, requires_grad=True)
            tape = wp.Tape()
            with tape:
                u = self.equilibrium()
                wp.launch(shape_error, u.shape, inputs=[u, self.goal], outputs=[loss])
            tape.backward(loss)
            self.load.assign(self.load.numpy() - self.opts.rate * self.load.grad.numpy())
            tape.zero()
            print(f"round {r}: {loss.numpy()[0]:.4f}")


Membrane(Options()).train()

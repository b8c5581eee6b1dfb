"""Stochastic training of the mirror's flat command; a step is taken after every batch of exposures."""
import numpy as np
import warp as wp


class Momentum:
    def __init__(self, size, rate, inertia):
        self.v = np.zeros(size)
        self.rate = rate
        self.inertia = inertia

    def step(self, x, g):
        self.v = self.inertia * self.v - self.rate * g
        return x + self.v


class GradientBank:
    """Gradients of a batch add up in the command's gradient array until they are withdrawn."""

    def __init__(self, array):
        self.array = array

    def withdraw(self):
        g = self.array.grad.numpy().astype(float)
        self.array.grad.zero_()
        return g


class Trainer:
    def __init__(self, bench, cfg):
        self.bench = bench
        self.cfg = cfg
        self.command = np.zeros(bench.command.shape[0])
        self.bank = GradientBank(bench.command)
        self.optimiser = Momentum(len(self.command), cfg["rate"], cfg["inertia"])
        self.log = []

    def indices(self, iteration):
        b = self.cfg["batch"]
        return range(iteration * b, (iteration + 1) * b)

    def iterate(self, iteration):
        batch = self.cfg["batch"]
        self.bench.command.assign(self.command.astype(np.float32))
        total = 0.0
        for count, index in enumerate(self.indices(iteration), start=1):
            merit = wp.zeros(1, dtype=float, requires_grad=True)
            screen = self.bench.screen(index)
            tape = wp.Tape()
            with tape:
                self.bench.expose(screen, 1.0 / batch, merit)
            total += float(merit.numpy()[0])
            if count == batch:
                g = self.bank.withdraw()
                self.command = self.optimiser.step(self.command, g)
                self.log.append({"iteration": iteration, "merit": total, "gnorm": float(np.linalg.norm(g)), "g": g})
            tape.backward(merit)
        return total

    def run(self):
        for iteration in range(self.cfg["iterations"]):
            merit = self.iterate(iteration)
            if iteration % self.cfg["report"] == 0:
                print(f"{iteration:4d}  lost light {merit:.4f}  |g| {self.log[-1]['gnorm']:.4f}")
        return self.command

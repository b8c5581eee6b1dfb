"""Train gains, biases and weights of a small rate network to hold a wanted activity pattern."""

import argparse

import numpy as np
import warp as wp

import neuron

CELLS = 8


class Network:
    def __init__(self, steps, seed):
        rng = np.random.default_rng(seed)
        self.steps = steps
        stim = 0.5 + rng.uniform(-0.4, 0.9, (steps, CELLS))
        stim[:2, 5] += 16.0
        self.stim = wp.array(stim.astype(np.float32), dtype=float)
        self.weight = wp.array((0.2 * rng.normal(size=(CELLS, CELLS))).astype(np.float32), dtype=float, requires_grad=True)
        self.cell = neuron.Cell()
        self.cell.gain = wp.array(np.full(CELLS, 0.8), dtype=float, requires_grad=True)
        self.cell.bias = wp.array(np.full(CELLS, -0.2), dtype=float, requires_grad=True)
        self.cell.leak = 1.0

    def run(self, dt=0.1):
        rate = wp.zeros(CELLS, dtype=float, requires_grad=True)
        for t in range(self.steps):
            current = wp.zeros(CELLS, dtype=float, requires_grad=True)
            out = wp.zeros(CELLS, dtype=float, requires_grad=True)
            wp.launch(neuron.drive, dim=CELLS, inputs=[rate, self.weight, self.stim, t], outputs=[current])
            wp.launch(neuron.respond, dim=CELLS, inputs=[rate, current, self.cell, dt], outputs=[out])
            rate = out
        return rate


class Trainer:
    def __init__(self, net, lr):
        self.net, self.lr = net, lr
        self.wanted = wp.array([0.6, 0.4, 0.9, 0.5, 0.7, 1.8, 0.3, 0.8], dtype=float)
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)

    def epoch(self):
        self.loss.zero_()
        tape = wp.Tape()
        with tape:
            rate = self.net.run()
            wp.launch(neuron.misfit, dim=CELLS, inputs=[rate, self.wanted], outputs=[self.loss])
        tape.backward(self.loss)
        self.apply()
        tape.zero()
        return float(self.loss.numpy()[0])

    def apply(self):
        net = self.net
        for p in (net.cell.gain, net.cell.bias, net.weight.flatten()):
            wp.launch(neuron.guarded_step, dim=p.shape, inputs=[p, p.grad, self.lr, 1.0])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=8)
    ap.add_argument("--lr", type=float, default=0.15)
    cfg = ap.parse_args()
    trainer = Trainer(Network(40, 4), cfg.lr)
    for e in range(cfg.epochs):
        print(f"epoch {e} misfit {trainer.epoch():.6f} bias {np.round(trainer.net.cell.bias.numpy(), 3)}")


if __name__ == "__main__":
    main()

"""Heating and ventilation plan of a greenhouse for three days, 144 half-hour steps.

The tape of the whole plan gets long, the days are therefore processed in blocks."""
import argparse

import numpy as np
import warp as wp

import climate


class Planner:
    def __init__(self, steps, block, rate):
        self.steps, self.block, self.rate, self.dt = steps, block, rate, 0.5
        t = np.arange(steps) * self.dt
        out = 6.0 + 5.0 * np.sin(2 * np.pi * (t - 9.0) / 24.0)
        sun = np.maximum(0.0, np.sin(2 * np.pi * (t - 6.0) / 24.0))
        self.weather = wp.array(np.stack([out, sun], axis=1).astype(np.float32), dtype=wp.vec2)
        self.want = (18.0 + 3.0 * (sun > 0.2)).astype(float)
        h = climate.House()
        h.loss_rate, h.solar_gain, h.soil_rate, h.damp_rate = 0.12, 1.2, 0.04, 0.3
        self.house = h
        self.control = wp.array(np.tile([0.0, -2.0], (steps, 1)).astype(np.float32), dtype=wp.vec2, requires_grad=True)
        self.speed = np.zeros((steps, 2))

    def run_block(self, state, first):
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        count = min(self.block, self.steps - first)
        tape = wp.Tape()
        with tape:
            for t in range(first, first + count):
                nxt = wp.empty_like(state)
                wp.launch(climate.advance, dim=1, inputs=[state, self.house, self.weather, self.control, t, self.dt], outputs=[nxt])
                wp.launch(climate.discomfort, dim=1, inputs=[nxt, self.want[t]], outputs=[loss])
                state = nxt
            wp.launch(climate.energy, dim=count, inputs=[self.control, first, 0.4], outputs=[loss])
        tape.backward(loss)
        return state, float(loss.numpy()[0])

    def iterate(self):
        self.control.grad.zero_()
        state = wp.array([[12.0, 11.0, 0.6]], dtype=wp.vec3, requires_grad=True)
        total = 0.0
        for first in range(0, self.steps, self.block):
            state, part = self.run_block(wp.clone(state), first)
            total += part
        self.descend(self.control.grad.numpy())
        return total / self.steps

    def descend(self, g):
        self.speed = 0.7 * self.speed - self.rate * np.clip(g, -20.0, 20.0)
        self.control.assign((self.control.numpy() + self.speed).astype(np.float32))


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=144)
    ap.add_argument("--block", type=int, default=12)
    ap.add_argument("--rate", type=float, default=0.003)
    ap.add_argument("--rounds", type=int, default=10)
    a = ap.parse_args()
    planner = Planner(a.steps, a.block, a.rate)
    for it in range(a.rounds):
        print(f"{it:2d} mean cost {planner.iterate():.4f} heat {np.exp(planner.control.numpy()[:, 0]).mean():.3f}")

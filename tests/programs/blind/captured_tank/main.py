"""Valve schedule for three coupled tanks. Forward and reverse sweeps are captured once and replayed."""

import argparse

import numpy as np
import warp as wp


@wp.kernel
def fill(level: wp.array2d(dtype=float), valve: wp.array2d(dtype=float), t: int, dt: float):
    k = wp.tid()
    h = level[t, k]
    out = 0.3 * wp.sqrt(h + 0.05)
    inflow = float(0.0)
    if k > 0:
        inflow = 0.3 * wp.sqrt(level[t, k - 1] + 0.05)
    knob = 1.0 / (1.0 + wp.exp(-valve[t / 5, k]))
    level[t + 1, k] = h + dt * (inflow + 0.5 * knob - out)


@wp.kernel
def track(level: wp.array2d(dtype=float), goal: wp.array(dtype=float), w: float, loss: wp.array(dtype=float)):
    t, k = wp.tid()
    d = level[t + 1, k] - goal[k]
    wp.atomic_add(loss, 0, w * d * d)


@wp.kernel
def descend(valve: wp.array2d(dtype=float), g: wp.array2d(dtype=float), rate: float):
    i, k = wp.tid()
    valve[i, k] -= rate * g[i, k]


class Tanks:
    def __init__(self, steps, rate):
        self.steps, self.rate = steps, rate
        start = np.zeros((steps + 1, 3), dtype=np.float32)
        start[0] = (0.4, 0.3, 0.5)
        self.level = wp.array(start, dtype=float, requires_grad=True)
        self.valve = wp.zeros(((steps + 4) // 5, 3), dtype=float, requires_grad=True)
        self.goal = wp.array([0.6, 0.9, 1.2], dtype=float)
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
        wp.load_module(device="cpu")
        with wp.ScopedCapture(device="cpu") as cap:
            self.loss.zero_()
            tape = wp.Tape()
            with tape:
                for t in range(steps):
                    wp.launch(fill, dim=3, inputs=[self.level, self.valve, t, 0.2])
                wp.launch(track, dim=(steps, 3), inputs=[self.level, self.goal, 10.0 / steps], outputs=[self.loss])
            for a in (self.level, self.valve, self.loss):
                a.grad.zero_()
            self.loss.grad.fill_(1.0)
            tape.backward()
        self.graph, self.tape = cap.graph, tape

    def iterate(self):
        wp.capture_launch(self.graph)
        self.update()
        return float(self.loss.numpy()[0])

    def update(self):
        wp.launch(descend, dim=self.valve.shape, inputs=[self.valve, self.valve.grad, self.rate])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=50)
    ap.add_argument("--rate", type=float, default=2.0)
    cfg = ap.parse_args()
    tanks = Tanks(cfg.steps, cfg.rate)
    for it in range(9):
        print(f"{it} loss {tanks.iterate():.6f} end levels {np.round(tanks.level.numpy()[-1], 3)}")


if __name__ == "__main__":
    main()

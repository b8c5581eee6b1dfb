"""Local dimming: choose the levels of the backlight zones of a display for one picture.
The LED drivers have five bits."""
import argparse

import numpy as np
import warp as wp

import panel


def picture(nx, ny):
    x, y = np.meshgrid(np.linspace(0, 1, nx), np.linspace(0, 1, ny), indexing="ij")
    return (0.15 + 0.9 * np.exp(-20 * ((x - 0.3) ** 2 + (y - 0.6) ** 2)) + 0.3 * (x > 0.7)).astype(np.float32)


class Display:
    def __init__(self, zones=(6, 4), pixels=(36, 24), bits=5):
        self.zones, self.pixels, self.steps = zones, pixels, float(2**bits - 1)
        rng = np.random.default_rng(1)
        self.lens = wp.array(rng.uniform(0.22, 0.28, zones).astype(np.float32), dtype=float)
        self.target = wp.array(picture(*pixels), dtype=float)
        self.duty = wp.zeros(zones, dtype=float, requires_grad=True)
        self.light = wp.zeros(pixels, dtype=float, requires_grad=True)

    def loss(self, level):
        out = wp.zeros(1, dtype=float, requires_grad=True)
        n = self.pixels[0] * self.pixels[1]
        wp.launch(panel.driver, dim=self.zones, inputs=[level, self.steps], outputs=[self.duty])
        wp.launch(panel.diffuse, dim=self.pixels, inputs=[self.duty, self.lens], outputs=[self.light])
        wp.launch(panel.mismatch, dim=self.pixels, inputs=[self.light, self.target, 100.0 / n], outputs=[out])
        wp.launch(panel.consumption, dim=self.zones, inputs=[level, 0.02], outputs=[out])
        return out


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--rate", type=float, default=1.0)
    ap.add_argument("--rounds", type=int, default=12)
    args = ap.parse_args()
    display = Display()
    level = wp.full(display.zones, 0.35, dtype=float, requires_grad=True)
    velocity = np.zeros(display.zones)
    for k in range(args.rounds):
        tape = wp.Tape()
        with tape:
            loss = display.loss(level)
        tape.backward(loss)
        velocity = 0.6 * velocity - args.rate * level.grad.numpy()
        tape.zero()
        print(f"{k:2d} loss {loss.numpy()[0]:.4f} levels {level.numpy().min():.3f} .. {level.numpy().max():.3f}")
        level.assign((level.numpy() + velocity).astype(np.float32))


if __name__ == "__main__":
    main()

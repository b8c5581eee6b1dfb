"""Tune the field of a small beam line so that the particles that reach the detector land in the
middle. Particles that hit the wall are dropped and the hits are stored densely."""

import numpy as np
import warp as wp
from warp.optim import Adam

from beamline import fly, hit_error, ripple

PARTICLES = 64


class BeamTuner:
    def __init__(self):
        rng = np.random.default_rng(17)
        self.y0 = wp.array(rng.normal(0.05, 0.18, PARTICLES).astype(np.float32), dtype=float)
        self.dy0 = wp.array(rng.normal(0.02, 0.04, PARTICLES).astype(np.float32), dtype=float)
        self.field = wp.array(np.linspace(0.3, 0.6, 10), dtype=float, requires_grad=True)
        self.kick = wp.array(np.linspace(0.02, -0.01, 10), dtype=float, requires_grad=True)
        self.opt = Adam([self.field, self.kick], lr=0.02)

    def forward(self):
        self.counter = wp.zeros(1, dtype=int)
        hits = wp.zeros(4 * PARTICLES, dtype=wp.vec2, requires_grad=True)
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
        wp.launch(fly, dim=PARTICLES, inputs=[self.y0, self.dy0, self.field, self.kick, 0.45, self.counter], outputs=[hits])
        wp.launch(hit_error, dim=hits.shape, inputs=[hits, 20.0 / PARTICLES], outputs=[self.loss])
        wp.launch(ripple, dim=9, inputs=[self.field, 0.5], outputs=[self.loss])
        wp.launch(ripple, dim=9, inputs=[self.kick, 0.5], outputs=[self.loss])

    def iterate(self):
        tape = wp.Tape()
        with tape:
            self.forward()
        self.arrived = int(self.counter.numpy()[0])
        tape.backward(self.loss)
        self.step()
        tape.zero()
        return float(self.loss.numpy()[0])

    def step(self):
        self.opt.step([self.field.grad, self.kick.grad])


def main():
    tuner = BeamTuner()
    for it in range(8):
        value = tuner.iterate()
        print(f"{it} loss {value:.5f} arrived {tuner.arrived} kick {np.round(tuner.kick.numpy()[:4], 4)}")


if __name__ == "__main__":
    main()

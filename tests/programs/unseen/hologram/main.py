"""Phases of a hologram, by Adam."""

import numpy as np
import warp as wp
from warp.optim import Adam

import shaders

PIXELS = 24


def main():
    rng = np.random.default_rng(0)
    image = wp.array(1.0 + rng.uniform(size=PIXELS), dtype=float)
    phase = wp.array(rng.normal(size=(PIXELS, 3)) * 0.5, dtype=wp.vec3, requires_grad=True)
    adam = Adam([phase], lr=0.02)
    for it in range(8):
        screen = wp.zeros(PIXELS, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            wp.launch(shaders.illuminate, PIXELS, inputs=[phase, 0.7], outputs=[screen])
            wp.launch(shaders.contrast, PIXELS, inputs=[screen, image], outputs=[loss])
        tape.backward(loss)
        adam.step([phase.grad])
        tape.zero()
        print(f"exposure {it}: {loss.numpy()[0]:.6f}")


if __name__ == "__main__":
    main()

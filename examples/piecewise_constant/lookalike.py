"""Find the exposure of six photographs, of which the eight-bit camera stored rounded greys."""
import numpy as np
import warp as wp

PHOTOS = 6
PIXELS = 16
ITERATIONS = 4
LEARNING_RATE = 0.05


@wp.kernel
def expose(exposure: wp.array(dtype=float), scene: wp.array2d(dtype=float), grey: wp.array2d(dtype=float)):
    f, p = wp.tid()
    grey[f, p] = 255.0 * exposure[f] * scene[f, p]


@wp.kernel
def store(grey: wp.array2d(dtype=float), stored: wp.array2d(dtype=float)):
    f, p = wp.tid()
    stored[f, p] = wp.round(wp.min(grey[f, p], 255.0))


@wp.kernel
def error(grey: wp.array2d(dtype=float), stored: wp.array2d(dtype=float), loss: wp.array(dtype=float)):
    f, p = wp.tid()
    d = (grey[f, p] - stored[f, p]) / 255.0
    wp.atomic_add(loss, 0, d * d)


scene = wp.array(np.random.default_rng(1).uniform(0.1, 0.9, (PHOTOS, PIXELS)), dtype=float)
grey = wp.zeros((PHOTOS, PIXELS), dtype=float, requires_grad=True)
stored = wp.zeros((PHOTOS, PIXELS), dtype=float)
taken_with = wp.array([0.9, 0.6, 0.8, 1.1, 0.5, 0.7], dtype=float)
exposure = wp.full(PHOTOS, 0.7, dtype=float, requires_grad=True)

for it in range(ITERATIONS):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(expose, (PHOTOS, PIXELS), inputs=[taken_with, scene], outputs=[grey])
        wp.launch(store, (PHOTOS, PIXELS), inputs=[grey], outputs=[stored])
        wp.launch(expose, (PHOTOS, PIXELS), inputs=[exposure, scene], outputs=[grey])
        wp.launch(error, (PHOTOS, PIXELS), inputs=[grey, stored], outputs=[loss])
    tape.backward(loss)

    slope = exposure.grad.numpy().copy()
    print(f"iteration {it}  loss {loss.numpy()[0]:.5f}  exposure {exposure.numpy()}  gradient {slope}")
    tape.zero()
    exposure.assign(exposure.numpy() - LEARNING_RATE * slope)

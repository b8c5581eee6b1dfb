"""Choose the exposure of six photographs so that their mean grey, as the eight-bit camera stores it, is 128."""
import numpy as np
import warp as wp

PHOTOS = 6
PIXELS = 16
ITERATIONS = 4
LEARNING_RATE = 0.002


@wp.kernel
def expose(exposure: wp.array(dtype=float), scene: wp.array2d(dtype=float), grey: wp.array2d(dtype=float)):
    f, p = wp.tid()
    grey[f, p] = wp.min(255.0 * exposure[f] * scene[f, p], 255.0)  # what the camera rounds afterwards


@wp.kernel
def mean_error(grey: wp.array2d(dtype=float), loss: wp.array(dtype=float)):
    f = wp.tid()
    mean = float(0.0)
    for p in range(PIXELS):
        mean += grey[f, p] / float(PIXELS)
    d = (mean - 128.0) / 128.0
    wp.atomic_add(loss, 0, d * d)


scene = wp.array(np.random.default_rng(1).uniform(0.1, 0.9, (PHOTOS, PIXELS)), dtype=float)
exposure = wp.full(PHOTOS, 0.7, dtype=float, requires_grad=True)
grey = wp.zeros((PHOTOS, PIXELS), dtype=float, requires_grad=True)

for it in range(ITERATIONS):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(expose, (PHOTOS, PIXELS), inputs=[exposure, scene], outputs=[grey])
        wp.launch(mean_error, PHOTOS, inputs=[grey], outputs=[loss])
    tape.backward(loss)

    slope = exposure.grad.numpy().copy()
    print(f"iteration {it}  loss {loss.numpy()[0]:.5f}  exposure {exposure.numpy()}  gradient {slope}")
    tape.zero()
    exposure.assign(exposure.numpy() - LEARNING_RATE * slope)

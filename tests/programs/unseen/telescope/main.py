"""Align the segments of a telescope mirror on a star image."""
import numpy as np
import warp as wp

SEGMENTS = 5
PIXELS = 20


@wp.kernel
def image(tilt: wp.array(dtype=float), pixel: wp.array(dtype=float)):
    p, s = wp.tid()
    x = 0.2 * (float(p) - 0.5 * float(PIXELS))
    d = x - tilt[s]
    wp.atomic_add(pixel, p, wp.exp(-2.0 * d * d) / float(SEGMENTS))


@wp.kernel
def difference(pixel: wp.array(dtype=float), star: wp.array(dtype=float), err: wp.array(dtype=float)):
    p = wp.tid()
    err[p] = 10.0 * (pixel[p] - star[p]) * (pixel[p] - star[p])


x = 0.2 * (np.arange(PIXELS) - 0.5 * PIXELS)
star = wp.array(np.exp(-2.0 * x**2), dtype=float)
tilt = wp.array([0.3, -0.2, 0.5, -0.6, 0.1], dtype=float, requires_grad=True)

for night in range(10):
    pixel = wp.zeros(PIXELS, dtype=float, requires_grad=True)
    err = wp.zeros(PIXELS, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(image, (PIXELS, SEGMENTS), inputs=[tilt], outputs=[pixel])
        wp.launch(difference, PIXELS, inputs=[pixel, star], outputs=[err])
    tape.backward(grads={err: wp.ones(PIXELS, dtype=float)})
    mse = float(err.numpy().mean())
    g = tilt.grad.numpy()
    print(f"night {night}: mse {mse:.5f}  |grad| {np.linalg.norm(g):.4f}")
    tilt = wp.array(tilt.numpy() - 0.3 * g, dtype=float, requires_grad=True)

"""Layers of glaze over a base coat: pigment strengths for a wanted colour."""
import numpy as np
import warp as wp

BANDS = 6
COATS = 3


@wp.kernel
def glaze(light: wp.array(dtype=float), pigment: wp.array2d(dtype=float), coat: int):
    b = wp.tid()
    light[b] *= 1.0 / (1.0 + pigment[coat, b] * pigment[coat, b])


@wp.kernel
def colour_error(light: wp.array(dtype=float), swatch: wp.array(dtype=float), dE: wp.array(dtype=float)):
    b = wp.tid()
    d = light[b] - swatch[b]
    wp.atomic_add(dE, 0, d * d)


swatch = wp.array([0.2, 0.3, 0.5, 0.45, 0.3, 0.15], dtype=float)
pigment = wp.array(0.3 + 0.1 * np.arange(COATS * BANDS).reshape(COATS, BANDS) % 0.5, dtype=float, requires_grad=True)


def paint():
    light = wp.ones(BANDS, dtype=float, requires_grad=True)
    dE = wp.zeros(1, dtype=float, requires_grad=True)
    for coat in range(COATS):
        wp.launch(glaze, BANDS, inputs=[light, pigment, coat])
    wp.launch(colour_error, BANDS, inputs=[light, swatch, dE])
    return dE


for sample in range(10):
    with wp.Tape() as tape:
        dE = paint()
    tape.backward(dE)
    pigment.assign(pigment.numpy() - 0.5 * pigment.grad.numpy())
    tape.zero()
    print("sample", sample, "dE", dE.numpy()[0])

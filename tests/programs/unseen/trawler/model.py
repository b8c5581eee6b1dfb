"""A small net of two layers, in structs."""

import numpy as np
import warp as wp

HIDDEN, BATCH = 12, 8


@wp.struct
class Layer:
    w: wp.array2d(dtype=float)
    b: wp.array(dtype=float)


@wp.kernel
def forward_hidden(x: wp.array2d(dtype=float), layer: Layer, out: wp.array2d(dtype=float)):
    i, j = wp.tid()
    s = layer.b[j]
    for k in range(3):
        s += layer.w[j, k] * x[i, k]
    out[i, j] = wp.tanh(s)


@wp.kernel
def forward_out(h: wp.array2d(dtype=float), layer: Layer, y: wp.array2d(dtype=float), share: float, loss: wp.array(dtype=float)):
    i = wp.tid()
    s = layer.b[0]
    for k in range(12):
        s += layer.w[0, k] * h[i, k]
    d = s - y[i, 0]
    wp.atomic_add(loss, 0, share * d * d)


def layer(rng, rows, columns):
    made = Layer()
    made.w = wp.array(rng.normal(size=(rows, columns)) / np.sqrt(columns), dtype=float, requires_grad=True)
    made.b = wp.array(rng.normal(size=rows) * 0.1, dtype=float, requires_grad=True)
    return made

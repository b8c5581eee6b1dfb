"""A number that every thread of every launch reads: its gradient is a sum of 2e7 contributions, in float32.

With --apart each launch reads a copy of its own, so that no sum is longer than a launch.
"""

import sys

import numpy as np
import warp as wp

CELLS, STEPS = 100_000, 200
APART = "--apart" in sys.argv


@wp.kernel
def warm(u: wp.array(dtype=float), rate: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = u[i] + 1.0e-3 * rate[0] * (1.0 + 0.001 * u[i])


@wp.kernel
def mean(u: wp.array(dtype=float), loss: wp.array(dtype=wp.float64)):
    i = wp.tid()
    wp.atomic_add(loss, 0, wp.float64(u[i]) / wp.float64(u.shape[0]))


start = wp.array(np.linspace(0.5, 1.0, CELLS), dtype=float)
rate = wp.array([0.7], dtype=float, requires_grad=True)
states, loss = [start], wp.zeros(1, dtype=wp.float64, requires_grad=True)
tape = wp.Tape()
with tape:
    for _ in range(STEPS):
        read = wp.clone(rate) if APART else rate
        states.append(wp.zeros(CELLS, dtype=float, requires_grad=True))
        wp.launch(warm, CELLS, inputs=[states[-2], read], outputs=[states[-1]])
    wp.launch(mean, CELLS, inputs=[states[-1], loss])
tape.backward(loss)
gradient = rate.grad.numpy().copy()
rate.assign(rate.numpy() - 1e-3 * gradient)
print(loss.numpy()[0], gradient)

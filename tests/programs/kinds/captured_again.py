"""A training step that is captured, and what goes wrong: `warm`, `early` and `new` are faults, `double` is a seed of two."""
import sys

import numpy as np
import warp as wp


@wp.kernel
def stretch(x: wp.array(dtype=float), k: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] + 0.1 * wp.sin(k[i] * x[i])


@wp.kernel
def misfit(y: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = y[i] - 1.5
    wp.atomic_add(loss, 0, d * d)


@wp.kernel
def descend(k: wp.array(dtype=float), g: wp.array(dtype=float)):
    i = wp.tid()
    k[i] = k[i] - 0.2 * g[i]


N = 32
states = [wp.array(np.linspace(0.5, 1.5, N), dtype=float, requires_grad=True)]
states += [wp.zeros(N, dtype=float, requires_grad=True) for _ in range(5)]
k = wp.array(np.full(N, 0.7), dtype=float, requires_grad=True)
loss = wp.zeros(1, dtype=float, requires_grad=True)
tape = wp.Tape()
wp.load_module(device="cpu")


def step():
    loss.zero_()
    with tape:
        for before, after in zip(states, states[1:]):
            wp.launch(stretch, N, inputs=[before, k], outputs=[after])
        wp.launch(misfit, N, inputs=[states[-1], loss])
    if "double" in sys.argv:
        loss.grad.fill_(2.0)
        tape.backward()
    else:
        tape.backward(loss)


if "warm" in sys.argv:
    step()  # compiles the kernels, and stays on the tape
    tape.zero()
with wp.ScopedCapture(device="cpu") as capture:
    step()

for it in range(3):
    used = wp.clone(k.grad) if "early" in sys.argv else k.grad
    wp.capture_launch(capture.graph)
    wp.launch(descend, N, inputs=[k, used])
    tape.zero()
    if "new" in sys.argv:
        k = wp.array(k.numpy(), dtype=float, requires_grad=True)
    print(it, loss.numpy()[0])

"""Gradients of four batches added up, clipped, then one update; `early`: clipped before the last batch is added."""
import sys
import numpy as np
import warp as wp
N, BATCHES = 24, 4


@wp.kernel
def model(x: wp.array4d(dtype=float), w: wp.array(dtype=float), y: wp.array(dtype=float), loss: wp.array(dtype=float)):
    b, i, j, k = wp.tid()
    d = wp.sin(w[i] * x[b, i, j, k]) - y[i]
    wp.atomic_add(loss, 0, d * d)


@wp.kernel
def square(g: wp.array(dtype=float), total: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(total, 0, g[i] * g[i])


@wp.kernel
def clip(g: wp.array(dtype=float), total: wp.array(dtype=float)):
    i = wp.tid()
    g[i] = g[i] * wp.min(1.0, 0.5 / wp.sqrt(total[0]))


@wp.kernel
def descend(w: wp.array(dtype=float), g: wp.array(dtype=float)):
    i = wp.tid()
    w[i] = w[i] - 0.1 * g[i]


rng = np.random.default_rng(1)
batches = [wp.array(rng.uniform(0.2, 1.0, (2, N, 2, 3)), dtype=float) for _ in range(BATCHES)]
y = wp.array(np.linspace(0.2, 0.8, N), dtype=float)
w = wp.array(np.full(N, 0.5), dtype=float, requires_grad=True)
total = wp.zeros(1, dtype=float)


def clipped():
    total.zero_()
    wp.launch(square, N, inputs=[w.grad, total])
    wp.launch(clip, N, inputs=[w.grad, total])


for it in range(3):
    w.grad.zero_()
    for k, x in enumerate(batches):
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            wp.launch(model, x.shape, inputs=[x, w, y, loss])
        tape.backward(loss)
        if "early" in sys.argv and k == BATCHES - 2:
            clipped()
    if "early" not in sys.argv:
        clipped()
    wp.launch(descend, N, inputs=[w, w.grad])
    print(it, loss.numpy()[0])

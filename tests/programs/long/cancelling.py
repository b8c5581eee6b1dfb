"""The loss adds up terms that nearly cancel, one by one in float32; in front of that the chain is severed."""

import numpy as np
import warp as wp

N = 20000


@wp.kernel
def grow(x: wp.array(dtype=float), rate: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = x[i] * (1.0 + 0.1 * rate[0] * x[i])


@wp.kernel
def total(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, x[i] / float(x.shape[0]))


x0 = wp.array(np.cos(np.linspace(0.0, np.pi, N)) * 3.0, dtype=float)
rate = wp.array([0.7], dtype=float, requires_grad=True)
a = wp.zeros(N, dtype=float, requires_grad=False)
b = wp.zeros(N, dtype=float, requires_grad=True)
loss = wp.zeros(1, dtype=float, requires_grad=True)
tape = wp.Tape()
with tape:
    wp.launch(grow, N, inputs=[x0, rate], outputs=[a])
    wp.launch(grow, N, inputs=[a, rate], outputs=[b])
    wp.launch(total, N, inputs=[b, loss])
tape.backward(loss)
gradient = rate.grad.numpy().copy()
rate.assign(rate.numpy() - 1e-6 * gradient)
print(loss.numpy()[0])

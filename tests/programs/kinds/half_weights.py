"""Weights in float16, the loss in float32; `broken`: the hand-written gradient of the activation is three times too large.

`dynamic`: the sum's loop is not unrolled, so that the right formula meets a wrong argument.
"""
import sys
import numpy as np
import warp as wp


@wp.func
def bend(x: float):
    return wp.tanh(x)


@wp.func_grad(bend)
def adj_bend(x: float, adj_ret: float):
    t = wp.tanh(x)
    wp.adjoint[x] += SLOPE * (1.0 - t * t) * adj_ret


ROWS, COLUMNS = 6, wp.constant(10)
SLOPE = wp.constant(3.0 if "broken" in sys.argv else 1.0)


@wp.kernel
def layer(w: wp.array2d(dtype=wp.float16), x: wp.array(dtype=float), h: wp.array(dtype=float)):
    i = wp.tid()
    s = wp.float(0.0)
    for j in range(COLUMNS):  # a constant: Warp unrolls the loop, and the adjoint of bend() meets the whole sum
        s += wp.float32(w[i, j]) * x[j]
    h[i] = bend(s)


@wp.kernel
def layer_of_any_width(w: wp.array2d(dtype=wp.float16), x: wp.array(dtype=float), h: wp.array(dtype=float)):
    i = wp.tid()
    s = wp.float(0.0)
    for j in range(x.shape[0]):
        s += wp.float32(w[i, j]) * x[j]
    h[i] = bend(s)


@wp.kernel
def misfit(h: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (h[i] - 0.8) * (h[i] - 0.8))


rng = np.random.default_rng(4)
w = wp.array(rng.uniform(-0.5, 0.5, (ROWS, COLUMNS)).astype(np.float16), dtype=wp.float16, requires_grad=True)
x = wp.array(rng.uniform(0.2, 1.0, COLUMNS), dtype=float)

for it in range(3):
    h = wp.zeros(ROWS, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(layer_of_any_width if "dynamic" in sys.argv else layer, ROWS, inputs=[w, x], outputs=[h])
        wp.launch(misfit, ROWS, inputs=[h], outputs=[loss])
    tape.backward(loss)
    w.assign((w.numpy() - np.float16(0.1) * w.grad.numpy()).astype(np.float16))
    tape.zero()
    print(it, loss.numpy()[0])

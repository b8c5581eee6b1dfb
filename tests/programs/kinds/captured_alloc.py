"""The whole training step is captured once; every step's work arrays are made during the capture."""
import numpy as np
import warp as wp


@wp.kernel
def step(x: wp.array(dtype=float), k: wp.array(dtype=float), table: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] + 0.1 * wp.sin(k[i] * x[i]) * table[0]


@wp.kernel
def misfit(y: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = y[i] - 1.5
    wp.atomic_add(loss, 0, d * d)


@wp.kernel
def descend(k: wp.array(dtype=float), g: wp.array(dtype=float)):
    i = wp.tid()
    k[i] = k[i] - 0.5 * g[i]


N = 64
start = wp.array(np.linspace(0.5, 1.5, N), dtype=float)
k = wp.array(np.full(N, 0.7), dtype=float, requires_grad=True)
table = wp.array([1.2], dtype=float)
loss = wp.zeros(1, dtype=float, requires_grad=True)
wp.load_module(device="cpu")
junk = [wp.full(N, float("nan"), dtype=float) for _ in range(400)]
del junk  # memory that is given out again is not zero

with wp.ScopedCapture(device="cpu") as capture:
    loss.zero_()
    tape = wp.Tape()
    with tape:
        x = start
        for _ in range(6):
            y = wp.zeros(N, dtype=float, requires_grad=True)
            wp.launch(step, N, inputs=[x, k, table], outputs=[y])
            x = y
        wp.launch(misfit, N, inputs=[x, loss])
    tape.backward(loss)

for it in range(1):  # no other iteration shows where this one begins
    wp.capture_launch(capture.graph)
    wp.launch(descend, N, inputs=[k, k.grad])
    tape.zero()
    print(it, loss.numpy()[0])

"""A right program whose loss and whose gradient are float32 sums, each of one launch: every thread adds to them.

--threads: how many. --offset: the mean of what is added. --planted: one function's custom gradient is a fifth too large.
"""

import argparse

import numpy as np
import warp as wp

options = argparse.ArgumentParser()
options.add_argument("--threads", type=int, default=100_000)
options.add_argument("--offset", type=float, default=3.0)
options.add_argument("--planted", action="store_true")
chosen = options.parse_args()


@wp.kernel
def wave(a: wp.array(dtype=float), x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = a[0] * wp.sin(x[i]) + a[1] * wp.cos(2.0 * x[i]) + a[2]


@wp.kernel
def total(y: wp.array(dtype=float), seen: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, 0.37 * (y[i] + seen[i]))


if chosen.planted:

    @wp.func
    def gauge(x: float):
        return x

    @wp.func_grad(gauge)
    def adj_gauge(x: float, adj_ret: float):
        wp.adjoint[x] += 1.2 * adj_ret

    @wp.kernel
    def total_planted(y: wp.array(dtype=float), seen: wp.array(dtype=float), loss: wp.array(dtype=float)):
        i = wp.tid()
        wp.atomic_add(loss, 0, 0.37 * (gauge(y[i]) + seen[i]))

    total = total_planted


n = chosen.threads
rng = np.random.default_rng(2)
x = wp.array(rng.uniform(0.0, 6.3, n), dtype=float)
seen = wp.array(rng.normal(chosen.offset, 1.0, n), dtype=float)
a = wp.array([0.4, 0.2, 0.1], dtype=float, requires_grad=True)
for epoch in range(2):
    tape = wp.Tape()
    with tape:
        y = wp.zeros(n, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        wp.launch(wave, n, inputs=[a, x], outputs=[y])
        wp.launch(total, n, inputs=[y, seen], outputs=[loss])
    tape.backward(loss)
    a.assign(a.numpy() - 1e-7 * a.grad.numpy())
    print(f"epoch {epoch}: {loss.numpy()[0]:.6g}")
    tape.zero()

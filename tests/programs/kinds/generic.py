"""Generic kernels, overloads, closures and kernels of a module of their own."""
from typing import Any
import numpy as np
import warp as wp


@wp.kernel
def scale(x: wp.array(dtype=Any), s: wp.array(dtype=Any), y: wp.array(dtype=Any)):
    i = wp.tid()
    y[i] = x[i] * s[0]


wp.overload(scale, [wp.array(dtype=wp.float32)] * 3)


def make_power(n):
    @wp.func
    def f(v: float):
        return wp.pow(v, float(n))

    @wp.kernel(module="unique")
    def power(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = f(x[i]) * float(wp.static(n + 1))

    return power


def total(x: float, y: float):
    return x * y


@wp.kernel
def widen(x: wp.array(dtype=float), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = wp.float64(x[i])


@wp.kernel
def sum64(x: wp.array(dtype=wp.float64), loss: wp.array(dtype=wp.float64)):
    i = wp.tid()
    wp.atomic_add(loss, 0, x[i])


square, cube = make_power(2), make_power(3)
x = wp.array(np.linspace(0.5, 1.5, 8), dtype=float)
s = wp.array([0.8], dtype=float, requires_grad=True)
s64 = wp.array([0.6], dtype=wp.float64, requires_grad=True)
for it in range(3):
    a, b, c, d = (wp.zeros(8, dtype=float, requires_grad=True) for _ in range(4))
    e, f = (wp.zeros(8, dtype=wp.float64, requires_grad=True) for _ in range(2))
    loss = wp.zeros(1, dtype=wp.float64, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(scale, 8, inputs=[x, s], outputs=[a])
        wp.launch(square, 8, inputs=[a], outputs=[b])
        wp.launch(cube, 8, inputs=[a], outputs=[c])
        wp.map(total, b, c, out=d)
        wp.launch(widen, 8, inputs=[d], outputs=[e])
        wp.launch(scale, 8, inputs=[e, s64], outputs=[f])
        wp.launch(sum64, 8, inputs=[f], outputs=[loss])
    tape.backward(loss)
    s.assign(s.numpy() - 1e-4 * s.grad.numpy())
    s64.assign(s64.numpy() - 1e-4 * s64.grad.numpy())
    tape.zero()
    print(it, loss.numpy()[0])

"""Three marbles dropped on a sprung floor; choose the throw so that they come to lie at their marks."""
import numpy as np
import warp as wp

MARBLES = 3
SUBSTEPS = 80
DT = 0.015


class Marbles:
    def __init__(self, x, v):
        self.x, self.v = x, v

    @staticmethod
    def empty():
        z = lambda: wp.zeros(MARBLES, dtype=wp.vec2, requires_grad=True)
        return Marbles(z(), z())


@wp.kernel
def bounce(x: wp.array(dtype=wp.vec2), v: wp.array(dtype=wp.vec2), dt: float, xo: wp.array(dtype=wp.vec2), vo: wp.array(dtype=wp.vec2)):
    m = wp.tid()
    p = x[m]
    u = v[m]
    f = wp.vec2(0.0, -2.0)
    if p[1] < 0.1:
        depth = 0.1 - p[1]
        push = 300.0 * depth - 2.0 * u[1]
        if push > 0.0:
            f = f + wp.vec2(-0.3 * push * wp.tanh(u[0] * 5.0), push)
    for other in range(MARBLES):
        if other != m:
            d = p - x[other]
            n = wp.length(d)
            if n < 0.2:
                f = f + d * (80.0 * (0.2 - n) / n)
    un = u + dt * f
    vo[m] = un
    xo[m] = p + dt * un


@wp.kernel
def off_mark(x: wp.array(dtype=wp.vec2), mark: wp.array(dtype=float), total: wp.array(dtype=float)):
    m = wp.tid()
    d = x[m][0] - mark[m]
    wp.atomic_add(total, 0, d * d)


begin = wp.array([[0.0, 0.5], [0.15, 0.8], [0.6, 0.4]], dtype=wp.vec2)
mark = wp.array([0.5, 0.9, 1.6], dtype=float)
throw = wp.array([[0.6, 0.1], [0.5, 0.0], [0.7, 0.2]], dtype=wp.vec2, requires_grad=True)

for n in range(10):
    roll = [Marbles(begin, throw)] + [Marbles.empty() for _ in range(SUBSTEPS)]
    total = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        for a, b in zip(roll, roll[1:]):
            wp.launch(bounce, MARBLES, inputs=[a.x, a.v, DT], outputs=[b.x, b.v])
        wp.launch(off_mark, MARBLES, inputs=[roll[-1].x, mark], outputs=[total])
    tape.backward(total)
    print(f"throw {n}: off the marks by {total.numpy()[0]:.5f}")
    throw.assign(throw.numpy() - 0.1 * throw.grad.numpy())
    tape.zero()

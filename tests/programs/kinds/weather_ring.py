"""Forcing of a forty-point weather ring (Lorenz 1996) from the state after some days."""
import argparse

import numpy as np
import warp as wp

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=300)
parser.add_argument("--iterations", type=int, default=2)
args = parser.parse_args()

N = 40
DT = 0.04
STEPS = args.steps


@wp.func
def tendency(x: wp.array(dtype=float), i: int, force: float):
    a = x[(i + 1) % N]
    b = x[(i + N - 2) % N]
    c = x[(i + N - 1) % N]
    return (a - b) * c - x[i] + force


@wp.kernel
def midpoint(x: wp.array(dtype=float), force: wp.array(dtype=float), half: wp.array(dtype=float)):
    i = wp.tid()
    half[i] = x[i] + 0.5 * DT * tendency(x, i, force[0])


@wp.kernel
def whole(x: wp.array(dtype=float), half: wp.array(dtype=float), force: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = x[i] + DT * tendency(half, i, force[0])


@wp.kernel
def miss(x: wp.array(dtype=float), seen: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = x[i] - seen[i]
    wp.atomic_add(loss, 0, d * d / float(N))


start = 8.0 + np.sin(np.arange(N) * 1.3)
xs = [wp.array(start, dtype=float, requires_grad=True)]
xs += [wp.zeros(N, dtype=float, requires_grad=True) for _ in range(STEPS)]
halves = [wp.zeros(N, dtype=float, requires_grad=True) for _ in range(STEPS)]
loss = wp.zeros(1, dtype=float, requires_grad=True)


def forecast(force):
    for k in range(STEPS):
        wp.launch(midpoint, N, inputs=[xs[k], force], outputs=[halves[k]])
        wp.launch(whole, N, inputs=[xs[k], halves[k], force], outputs=[xs[k + 1]])


forecast(wp.array([8.0], dtype=float))
seen = wp.array(xs[-1].numpy().copy(), dtype=float)
force = wp.array([7.8], dtype=float, requires_grad=True)
for it in range(args.iterations):
    loss.zero_()
    tape = wp.Tape()
    with tape:
        forecast(force)
        wp.launch(miss, N, inputs=[xs[-1], seen], outputs=[loss])
    tape.backward(loss)
    g = force.grad.numpy().copy()
    tape.zero()
    print(f"{it:2d} loss {loss.numpy()[0]:.4f} force {force.numpy()[0]:.4f} slope {g[0]:.4g}")
    force.assign(force.numpy() - 1.0e-3 * np.clip(g, -10.0, 10.0))

"""A long rollout of pendulums, with faults on request: a state overwritten after it was read, a severed chain."""

import argparse

import numpy as np
import warp as wp

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=1000)
parser.add_argument("--cells", type=int, default=256)
parser.add_argument("--clobber", type=int, default=-9, help="after this step, overwrite a state that was read")
parser.add_argument("--sever", type=int, default=-9, help="pass this step through an array without gradient")
parser.add_argument("--nudge", type=int, default=-9, help="after this step, write to the state from the host")
parser.add_argument("--pingpong", action="store_true", help="two buffers in turn for all states")
parser.add_argument("--apart", action="store_true", help="ten steps share a copy of the rate: no sum of its gradient is long")
parser.add_argument("--rows", action="store_true", help="the states are rows of one array")
a = parser.parse_args()


@wp.kernel
def advance(u: wp.array(dtype=wp.vec2), rate: wp.array(dtype=float), out: wp.array(dtype=wp.vec2)):
    i = wp.tid()
    q = u[i][0]
    p = u[i][1] - 0.02 * rate[0] * wp.sin(q)
    out[i] = wp.vec2(q + 0.02 * p, p)


@wp.kernel
def scale(u: wp.array(dtype=wp.vec2), by: float, out: wp.array(dtype=wp.vec2)):
    i = wp.tid()
    out[i] = by * u[i]


@wp.kernel
def bend(u: wp.array(dtype=wp.vec2), out: wp.array(dtype=wp.vec2)):
    i = wp.tid()
    out[i] = u[i] * (0.9 + 0.1 * u[i][0] * u[i][0])


@wp.kernel
def energy(u: wp.array(dtype=wp.vec2), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, u[i][0] / float(u.shape[0]))


start = wp.array(np.stack([np.linspace(0.2, 0.5, a.cells), np.zeros(a.cells)], 1), dtype=wp.vec2)
rate = wp.array([0.7], dtype=float, requires_grad=True)
rows = wp.zeros((a.steps, a.cells), dtype=wp.vec2, requires_grad=True) if a.rows else None


def fresh(grad=True):
    return wp.zeros(a.cells, dtype=wp.vec2, requires_grad=grad)


read = rate
states, pair = [start], [fresh(), fresh()]
loss = wp.zeros(1, dtype=float, requires_grad=True)
tape = wp.Tape()
with tape:
    for k in range(a.steps):
        read = wp.clone(rate) if a.apart and k % 10 == 0 else read
        if k == a.sever:
            lost = fresh(False)
            wp.launch(scale, a.cells, inputs=[states[-1], 0.99], outputs=[lost])
            states.append(fresh())
            wp.launch(scale, a.cells, inputs=[lost, 1.01], outputs=[states[-1]])  # severed
        states.append(rows[k] if a.rows else pair[k % 2] if a.pingpong else fresh())
        wp.launch(advance, a.cells, inputs=[states[-2], read], outputs=[states[-1]])  # step
        if k == a.nudge:
            states[-1].numpy()[:] *= 1.01  # nudge
        if k == a.clobber:
            states.append(fresh())
            wp.launch(bend, a.cells, inputs=[states[-2]], outputs=[states[-1]])  # reader
            wp.launch(scale, a.cells, inputs=[states[-1], 30.0], outputs=[states[-2]])  # writer
    wp.launch(energy, a.cells, inputs=[states[-1], loss])
tape.backward(loss)
gradient = rate.grad.numpy().copy()
rate.assign(rate.numpy() - 1e-6 * gradient)
print(loss.numpy()[0])

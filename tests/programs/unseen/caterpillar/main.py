"""A caterpillar of segments that pull each other; muscle tension is fitted to where the head should be."""

import argparse

import numpy as np
import warp as wp

SEGMENTS = 10


@wp.struct
class Body:
    x: wp.array(dtype=wp.vec2)
    v: wp.array(dtype=wp.vec2)


@wp.func
def pull(a: wp.vec2, b: wp.vec2, rest: float):
    d = b - a
    stretch = wp.length(d) - rest
    return wp.normalize(d) * stretch * (1.0 + stretch * stretch)


@wp.kernel
def crawl(body: Body, tension: wp.array(dtype=float), stride: float, after: Body):
    i = wp.tid()
    n = body.x.shape[0]
    f = wp.vec2(0.0, 0.0)
    if i > 0:
        f = f + pull(body.x[i], body.x[i - 1], 0.5 + tension[i % 3])
    if i < n - 1:
        f = f + pull(body.x[i], body.x[i + 1], 0.5 + tension[i % 3])
    v = body.v[i] * 0.95 + f * stride
    after.v[i] = v
    after.x[i] = body.x[i] + v * stride


@wp.kernel
def head_error(body: Body, goal: wp.vec2, loss: wp.array(dtype=float)):
    d = body.x[0] - goal
    loss[0] = wp.dot(d, d)


def make_body(requires_grad=True):
    body = Body()
    body.x = wp.array([(0.6 * k, 0.05 * (k % 3)) for k in range(SEGMENTS)], dtype=wp.vec2, requires_grad=requires_grad)
    body.v = wp.zeros(SEGMENTS, dtype=wp.vec2, requires_grad=requires_grad)
    return body


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--strides", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    tension = wp.array([0.05, -0.1, 0.1], dtype=float, requires_grad=True)
    goal = wp.vec2(0.4, 0.2)
    for it in range(options.rounds):
        bodies = [make_body(), *[make_body()] * options.strides]
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            for s in range(options.strides):
                wp.launch(crawl, SEGMENTS, inputs=[bodies[s], tension, 0.25], outputs=[bodies[s + 1]])
            wp.launch(head_error, 1, inputs=[bodies[-1], goal], outputs=[loss])
        tape.backward(loss=loss)
        g = tension.grad.numpy()
        print(f"round {it} loss {loss.numpy()[0]:.6f} gradient {np.round(g, 5)}")
        tension.assign(tension.numpy() - 0.2 * g)
        tape.zero()


if __name__ == "__main__":
    main()

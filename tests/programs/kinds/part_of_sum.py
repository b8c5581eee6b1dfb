"""A damped mass's spring and damper from its path and its heat: which number is printed, and where backward begins.

The first argument says it; what is true of each stands in tests/end_to_end/test_diagnose.py.
"""

import sys

import numpy as np
import warp as wp

STEPS, DT = 40, 0.05


@wp.kernel
def step(x: wp.array(dtype=wp.vec3), p: wp.array(dtype=float), t: int, out: wp.array(dtype=wp.vec3), path: wp.array(dtype=float)):
    s = x[0]
    v = s[1] + DT * (-p[0] * s[0] - p[1] * s[1])
    out[0] = wp.vec3(s[0] + DT * v, v, s[2] + DT * p[1] * v * v)
    path[t] = s[0] + DT * v


@wp.kernel
def path_error(path: wp.array(dtype=float), seen: wp.array(dtype=float), err: wp.array(dtype=float)):
    t = wp.tid()
    wp.atomic_add(err, 0, (path[t] - seen[t]) * (path[t] - seen[t]))


@wp.kernel
def heat_error(x: wp.array(dtype=wp.vec3), err: wp.array(dtype=float)):
    d = x[0][2] - 2.0
    wp.atomic_add(err, 0, d * d)


@wp.kernel
def penalty(p: wp.array(dtype=float), err: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(err, 0, 0.5 * p[i] * p[i])


@wp.kernel
def add(a: wp.array(dtype=float), b: wp.array(dtype=float), w: wp.array(dtype=float), out: wp.array(dtype=float)):
    both = a[0] + w[0] * b[0]
    out[0] = both / 2.0


@wp.kernel
def pour(part: wp.array(dtype=float), out: wp.array(dtype=float)):
    wp.atomic_add(out, 0, part[0])


@wp.kernel
def root(a: wp.array(dtype=float), out: wp.array(dtype=float)):
    out[0] = wp.sqrt(a[0] / float(STEPS))


@wp.kernel
def ratio(a: wp.array(dtype=float), b: wp.array(dtype=float), out: wp.array(dtype=float)):
    out[0] = a[0] / (1.0 + b[0])


@wp.kernel
def farthest(x: wp.array(dtype=wp.vec3), out: wp.array(dtype=float)):
    out[0] = wp.abs(x[0][0])


def main(variant):
    p = wp.array([2.0, 0.3], dtype=float, requires_grad=True)
    t = np.arange(1, STEPS + 1) * DT
    seen = wp.array(np.cos(1.7 * t) * np.exp(-0.2 * t), dtype=float)
    w = wp.array([0.5], dtype=float)
    for it in range(8):
        first, second, shown = (wp.zeros(1, dtype=float, requires_grad=True) for _ in range(3))
        path = wp.zeros(STEPS, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            x = wp.array([[1.0, 0.0, 0.0]], dtype=wp.vec3, requires_grad=True)
            for k in range(STEPS):
                following = wp.zeros(1, dtype=wp.vec3, requires_grad=True)
                wp.launch(step, dim=1, inputs=[x, p, k], outputs=[following, path])
                x = following
            wp.launch(path_error, dim=STEPS, inputs=[path, seen], outputs=[first])
            if variant in ("penalty", "descended"):
                wp.launch(penalty, dim=2, inputs=[p], outputs=[second])
            else:
                wp.launch(heat_error, dim=1, inputs=[x], outputs=[second])
            if variant == "rmse":
                wp.launch(root, dim=1, inputs=[first], outputs=[shown])
            elif variant == "ratio":
                wp.launch(ratio, dim=1, inputs=[first, second], outputs=[shown])
            elif variant == "farthest":
                wp.launch(farthest, dim=1, inputs=[x], outputs=[shown])
            elif variant == "poured":
                wp.launch(pour, dim=1, inputs=[first], outputs=[shown])
                wp.launch(pour, dim=1, inputs=[second], outputs=[shown])
            else:
                wp.launch(add, dim=1, inputs=[first, second, w], outputs=[shown])
        if variant == "whole":
            tape.backward(shown)
        elif variant == "turns":
            tape.backward((first, second)[it % 2])
        else:
            tape.backward(first)
        gradient = p.grad.numpy().copy()
        if variant == "each":
            tape.zero()
            tape.backward(second)
            gradient = 0.5 * (gradient + 0.5 * p.grad.numpy())
        if variant == "descended":
            gradient = 0.5 * (gradient + 0.5 * p.numpy())
        p.assign(p.numpy() - 0.02 * gradient)
        tape.zero()
        print(f"{it} fit {shown.numpy()[0]:.6f}" + (f" path {first.numpy()[0]:.6f}" if variant == "logged" else ""))


if __name__ == "__main__":
    main(sys.argv[1])

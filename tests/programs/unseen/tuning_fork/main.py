"""Recover frequency and decay of a tuning fork from a short recording."""
from argparse import ArgumentParser

import numpy as np
import warp as wp

wp.config.quiet = True


@wp.kernel
def sound(p: wp.array(dtype=float), dt: float, y: wp.array(dtype=float)):
    t = wp.tid()
    s = float(t) * dt
    y[t] = wp.exp(-p[1] * s) * wp.cos(p[0] * s) * p[2]


@wp.kernel
def sse(y: wp.array(dtype=float), heard: wp.array(dtype=float), e: wp.array(dtype=float)):
    t = wp.tid()
    wp.atomic_add(e, 0, 0.1 * (y[t] - heard[t]) * (y[t] - heard[t]))


def fit(samples, iterations, lr):
    t = 0.1 * np.arange(samples)
    heard = wp.array(np.exp(-0.3 * t) * np.cos(2.2 * t), dtype=wp.float32)
    p = wp.array(np.array([2.0, 0.2, 0.8]), dtype=wp.float32, requires_grad=True)
    y = wp.zeros(samples, dtype=float, requires_grad=True)
    e = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    history = []
    for i in range(iterations):
        tape.reset()
        e.zero_()
        with tape:
            wp.launch(sound, samples, [p, 0.1], [y])
            wp.launch(sse, samples, [y, heard], [e])
        tape.backward(e)
        values = p.numpy()
        values -= lr * p.grad.numpy()
        tape.zero()
        history.append(e.numpy().item())
        print(f"{i}\t{history[-1]:.6f}\t{values}")
    return history


if __name__ == "__main__":
    ap = ArgumentParser()
    ap.add_argument("--samples", type=int, default=60)
    ap.add_argument("-n", "--iterations", type=int, default=10)
    ap.add_argument("--lr", type=float, default=0.05)
    fit(**vars(ap.parse_args()))

"""Crossover network of a loudspeaker: flat response over the listening band."""
import argparse

import numpy as np
import warp as wp


@wp.kernel
def response(freq: wp.array(dtype=float), part: wp.array(dtype=float), level: wp.array(dtype=float)):
    f = wp.tid()
    w = freq[f]
    low = part[2] / (1.0 + w * w * part[0])
    high = part[3] * w * w * part[1] / (1.0 + w * w * part[1])
    level[f] = low + high


@wp.kernel
def ripple(level: wp.array(dtype=float), n: int, out: wp.array(dtype=float)):
    f = wp.tid()
    d = level[f] - 1.0
    wp.atomic_add(out, 0, d * d / float(n))


parser = argparse.ArgumentParser()
parser.add_argument("--bands", type=int, default=40)
parser.add_argument("--sweeps", type=int, default=10)
parser.add_argument("--gain", type=float, default=0.05)
args = parser.parse_args()

freq = wp.array(np.geomspace(0.1, 10.0, args.bands), dtype=float)
part = wp.array([2.0, 0.5, 0.8, 0.7], dtype=float, requires_grad=True)
level = wp.zeros(args.bands, dtype=float, requires_grad=True)
out = wp.zeros(1, dtype=float, requires_grad=True)
tape = wp.Tape()

for sweep in range(args.sweeps):
    out.zero_()
    with tape:
        wp.launch(response, args.bands, inputs=[freq, part], outputs=[level])
        wp.launch(ripple, args.bands, inputs=[level, args.bands], outputs=[out])
    tape.backward(out)
    dp = part.grad.numpy().copy()
    tape.zero()
    part.assign(part.numpy() - args.gain * dp)
    print(f"sweep {sweep:3d}   ripple {out.numpy()[0]:.6f}")

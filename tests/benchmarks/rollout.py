"""A rollout of many small launches: how much watching and measuring add to it."""

import argparse
import time

import numpy as np
import warp as wp

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=10_000)
parser.add_argument("--cells", type=int, default=64)
parser.add_argument("--iterations", type=int, default=1)
arguments = parser.parse_args()


@wp.kernel
def advance(u: wp.array(dtype=float), rate: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    n = u.shape[0]
    out[i] = u[i] + 0.01 * rate[0] * (u[(i + 1) % n] - u[i]) - 0.001 * u[i] * u[i] * u[i]  # stable: any --steps


@wp.kernel
def energy(u: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, u[i] * u[i])


start = wp.array(np.sin(np.linspace(0.0, 6.0, arguments.cells)), dtype=float)
rate = wp.array([0.7], dtype=float, requires_grad=True)
wp.load_module(device="cpu")

for _ in range(arguments.iterations):
    began, began_cpu = time.perf_counter(), time.process_time()
    states = [start]
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        for _ in range(arguments.steps):
            states.append(wp.zeros(arguments.cells, dtype=float, requires_grad=True))
            wp.launch(advance, arguments.cells, inputs=[states[-2], rate], outputs=[states[-1]])
        wp.launch(energy, arguments.cells, inputs=[states[-1], loss])
    middle, middle_cpu = time.perf_counter(), time.process_time()
    tape.backward(loss)
    ended, ended_cpu = time.perf_counter(), time.process_time()
    gradient = rate.grad.numpy().copy()
    rate.grad.zero_()
    rate.assign(rate.numpy() - 1e-6 * gradient)
    print(f"forward_s={middle - began:.6f} backward_s={ended - middle:.6f} loss={loss.numpy()[0]:.6f}")
    print(f"forward_cpu_s={middle_cpu - began_cpu:.6f} backward_cpu_s={ended_cpu - middle_cpu:.6f}")

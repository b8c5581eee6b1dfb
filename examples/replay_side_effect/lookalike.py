"""Calibrate a seismometer's gain in each direction from what it has recorded, and list the shocks."""
import numpy as np
import warp as wp

MOMENTS = 24
DIRECTIONS = 3
ITERATIONS = 4
LEARNING_RATE = 0.02


@wp.func
def next_place(count: wp.array(dtype=int)):
    return wp.atomic_add(count, 0, 1)


@wp.kernel
def collect(
    gain: wp.array(dtype=float),
    record: wp.array(dtype=float),
    count: wp.array(dtype=int),
    shocks: wp.array(dtype=int),
    motion: wp.array(dtype=float),
):
    m = wp.tid()
    motion[m] = gain[m % DIRECTIONS] * record[m]
    if wp.abs(record[m]) > 0.5:
        shocks[next_place(count)] = m


@wp.kernel
def misfit(motion: wp.array(dtype=float), truth: wp.array(dtype=float), loss: wp.array(dtype=float)):
    m = wp.tid()
    d = motion[m] - truth[m]
    wp.atomic_add(loss, 0, d * d)


record = np.random.default_rng(8).normal(size=MOMENTS)
truth = wp.array(record * np.tile([1.4, 0.8, 1.1], MOMENTS // DIRECTIONS), dtype=float)
record = wp.array(record, dtype=float)
gain = wp.full(DIRECTIONS, 1.0, dtype=float, requires_grad=True)

for it in range(ITERATIONS):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    count = wp.zeros(1, dtype=int)
    shocks = wp.zeros(2 * MOMENTS, dtype=int)
    motion = wp.zeros(MOMENTS, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(collect, MOMENTS, inputs=[gain, record, count], outputs=[shocks, motion])
        wp.launch(misfit, MOMENTS, inputs=[motion, truth], outputs=[loss])
    tape.backward(loss)

    slope = gain.grad.numpy().copy()
    print(f"iteration {it}  loss {loss.numpy()[0]:.5f}  gain {np.round(gain.numpy(), 4)}  gradient {slope}")
    tape.zero()
    gain.assign(gain.numpy() - LEARNING_RATE * slope)

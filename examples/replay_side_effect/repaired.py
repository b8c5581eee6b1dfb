"""Calibrate a seismometer's gain in each direction from the shocks it has recorded; quiet moments are left out."""
import numpy as np
import warp as wp

MOMENTS = 24
DIRECTIONS = 3
ITERATIONS = 4
LEARNING_RATE = 0.02


@wp.func
def next_place(count: wp.array(dtype=int), places: wp.array(dtype=int), m: int):
    place = wp.atomic_add(count, 0, 1)
    places[m] = place
    return place


@wp.func_replay(next_place)
def same_place(count: wp.array(dtype=int), places: wp.array(dtype=int), m: int):
    return places[m]


@wp.kernel
def collect(
    gain: wp.array(dtype=float),
    record: wp.array(dtype=float),
    count: wp.array(dtype=int),
    places: wp.array(dtype=int),
    shocks: wp.array(dtype=float),
    when: wp.array(dtype=int),
):
    m = wp.tid()
    if wp.abs(record[m]) > 0.5:
        place = next_place(count, places, m)
        shocks[place] = gain[m % DIRECTIONS] * record[m]
        when[place] = m


@wp.kernel
def misfit(
    shocks: wp.array(dtype=float), when: wp.array(dtype=int), truth: wp.array(dtype=float), loss: wp.array(dtype=float)
):
    s = wp.tid()
    d = shocks[s] - truth[when[s]]
    wp.atomic_add(loss, 0, d * d)


record = np.random.default_rng(8).normal(size=MOMENTS)
truth = wp.array(record * np.tile([1.4, 0.8, 1.1], MOMENTS // DIRECTIONS), dtype=float)
loud = int((np.abs(record) > 0.5).sum())
record = wp.array(record, dtype=float)
gain = wp.full(DIRECTIONS, 1.0, dtype=float, requires_grad=True)

for it in range(ITERATIONS):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    count, places = wp.zeros(1, dtype=int), wp.zeros(MOMENTS, dtype=int)
    shocks = wp.zeros(2 * MOMENTS, dtype=float, requires_grad=True)
    when = wp.zeros(2 * MOMENTS, dtype=int)
    with wp.Tape() as tape:
        wp.launch(collect, MOMENTS, inputs=[gain, record, count, places], outputs=[shocks, when])
        wp.launch(misfit, loud, inputs=[shocks, when, truth], outputs=[loss])
    tape.backward(loss)

    slope = gain.grad.numpy().copy()
    print(f"iteration {it}  loss {loss.numpy()[0]:.5f}  gain {np.round(gain.numpy(), 4)}  gradient {slope}")
    tape.zero()
    gain.assign(gain.numpy() - LEARNING_RATE * slope)

"""Checkpointing by hand, in place: every segment starts in the array that is trained, an initial state.

python checkpoint_in_place.py         two fields are handed from segment to segment, with their gradients
python checkpoint_in_place.py speed   ... the gradient of this one is not handed on (place: of the other; both may be)
"""
import sys

import numpy as np
import warp as wp

N, SEGMENTS, STEPS = 32, 3, 4


@wp.kernel
def move(
    speed: wp.array(dtype=float),
    place: wp.array(dtype=float),
    speed_out: wp.array(dtype=float),
    place_out: wp.array(dtype=float),
):
    i = wp.tid()
    v = speed[i] - 0.1 * wp.sin(place[i]) + 0.05 * (place[(i + 1) % N] - place[i])
    speed_out[i] = v
    place_out[i] = place[i] + 0.1 * v


@wp.kernel
def misfit(place: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = place[i] - 1.0
    wp.atomic_add(loss, 0, d * d)


def field(values=None):
    return wp.array(np.zeros(N) if values is None else values, dtype=float, requires_grad=True)


speeds = [field(np.linspace(-0.5, 0.5, N))] + [field() for _ in range(STEPS)]
places = [field(np.linspace(0.0, 2.0, N))] + [field() for _ in range(STEPS)]
start = wp.clone(places[0])
kept = [(wp.zeros(N, dtype=float), wp.zeros(N, dtype=float)) for _ in range(SEGMENTS)]
carried = wp.zeros(N, dtype=float), wp.zeros(N, dtype=float)
loss = wp.zeros(1, dtype=float, requires_grad=True)


def segment():
    for t in range(STEPS):
        wp.launch(move, N, inputs=[speeds[t], places[t]], outputs=[speeds[t + 1], places[t + 1]])


@wp.kernel
def descend(x: wp.array(dtype=float), g: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] - 0.05 * g[i]


for it in range(3):
    loss.zero_()
    wp.copy(places[0], start)
    for k in range(SEGMENTS):
        wp.copy(kept[k][0], speeds[0])
        wp.copy(kept[k][1], places[0])
        segment()
        if k < SEGMENTS - 1:
            wp.copy(speeds[0], speeds[STEPS])
            wp.copy(places[0], places[STEPS])
    wp.launch(misfit, N, inputs=[places[STEPS], loss])

    for k in reversed(range(SEGMENTS)):
        wp.copy(speeds[0], kept[k][0])
        wp.copy(places[0], kept[k][1])
        tape = wp.Tape()
        with tape:
            segment()
            if k == SEGMENTS - 1:
                total = wp.zeros(1, dtype=float, requires_grad=True)
                wp.launch(misfit, N, inputs=[places[STEPS], total])
        if k == SEGMENTS - 1:
            tape.backward(total)
        else:
            if "speed" not in sys.argv:
                wp.copy(speeds[STEPS].grad, carried[0])
            if "place" not in sys.argv:
                wp.copy(places[STEPS].grad, carried[1])
            tape.backward()
        if k > 0:
            wp.copy(carried[0], speeds[0].grad)
            wp.copy(carried[1], places[0].grad)
            tape.zero()
    wp.launch(descend, N, inputs=[speeds[0], speeds[0].grad])
    tape.zero()
    print(it, loss.numpy()[0])

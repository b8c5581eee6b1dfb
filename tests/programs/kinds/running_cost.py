"""Heating of a wall with a price for every step: segment by segment backwards, each seeded with its own cost and the adjoint of
the state behind it. `loss`: the cost is handed over as the loss; `dropped`: the adjoint of the state is not handed on."""
import sys

import numpy as np
import warp as wp

STEPS, SEGMENT, CELLS = 24, 6, 10


@wp.kernel
def conduct(temp: wp.array(dtype=float), power: wp.array(dtype=float), t: int, out: wp.array(dtype=float)):
    i = wp.tid()
    left, right = temp[wp.max(i - 1, 0)], temp[wp.min(i + 1, temp.shape[0] - 1)]
    heat = wp.where(i == 0, power[t], 0.0)
    out[i] = temp[i] + 0.2 * (left - 2.0 * temp[i] + right) - 0.01 * temp[i] * temp[i] + heat


@wp.kernel
def price(temp: wp.array(dtype=float), wanted: float, cost: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(cost, 0, (temp[i] - wanted) * (temp[i] - wanted) / float(temp.shape[0]))


def zeros():
    return wp.zeros(CELLS, dtype=float, requires_grad=True)


def run(state, power, first, costs=None):
    """The states after `first`, one segment of them."""
    for t in range(first, first + SEGMENT):
        after = zeros()
        wp.launch(conduct, CELLS, inputs=[state, power, t], outputs=[after])
        if costs is not None:
            wp.launch(price, CELLS, inputs=[after, 1.5], outputs=[costs])
        state = after
    return state


power = wp.full(STEPS, 0.3, dtype=float, requires_grad=True)
for it in range(5):
    kept = [zeros()]
    for first in range(0, STEPS, SEGMENT):
        kept.append(run(kept[-1], power, first))
    behind, total = np.zeros(CELLS, dtype=np.float32), 0.0
    for k in reversed(range(len(kept) - 1)):
        begin, cost = wp.clone(kept[k], requires_grad=True), wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            end = run(begin, power, k * SEGMENT, cost)
        seed = wp.array(np.zeros_like(behind) if "dropped" in sys.argv else behind, dtype=float)
        if "loss" in sys.argv:
            tape.backward(cost, grads={end: seed})
        else:
            tape.backward(grads={cost: wp.ones(1, dtype=float), end: seed})
        behind = begin.grad.numpy().copy()
        total += float(cost.numpy()[0])
    power.assign(power.numpy() - 0.02 * power.grad.numpy())
    power.grad.zero_()
    print(it, "cost", total)

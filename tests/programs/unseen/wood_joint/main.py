"""Reliability of a joint with many pegs: peg strengths against the loads of several storms."""
import numpy as np
import warp as wp

PEGS = 6
STORMS = 5


@wp.kernel
def survival(peg: wp.array(dtype=float), count: int, storm: wp.array(dtype=float), failure: wp.array(dtype=float)):
    s = wp.tid()
    all_break = float(1.0)
    for k in range(count):
        all_break = all_break * (1.0 - 0.6 * wp.exp(-storm[s] / peg[k]))
    wp.atomic_add(failure, 0, all_break)


@wp.kernel
def price(peg: wp.array(dtype=float), failure: wp.array(dtype=float)):
    k = wp.tid()
    wp.atomic_add(failure, 0, 0.01 * peg[k] * peg[k])


storm = wp.array([0.5, 0.8, 1.1, 1.6, 2.0], dtype=float)
peg = wp.array([0.6, 0.9, 1.2, 0.7, 1.0, 0.8], dtype=float, requires_grad=True)


def step(rate):
    failure = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(survival, STORMS, inputs=[peg, PEGS, storm, failure])
        wp.launch(price, PEGS, inputs=[peg, failure])
    tape.backward(failure)
    peg.assign(peg.numpy() - rate * peg.grad.numpy())
    peg.grad.zero_()
    return failure


for year in range(10):
    print(f"year {year}: objective {step(0.3).numpy()[0]:.5f}")

"""Fit the thickness of a paint so that its colour is right: photons wander through it until they leave."""
import time

import numpy as np
import warp as wp

PHOTONS = 64
BOUNCES = 6
ITERATIONS = 4
LEARNING_RATE = 0.5


@wp.kernel
def wander(seed: int, paint: wp.array(dtype=float), shine: wp.array(dtype=float)):
    p = wp.tid()
    dice = wp.rand_init(seed, p)
    deep = float(0.0)
    alive = float(1.0)
    for b in range(BOUNCES):
        deep += 0.3 * wp.randn(dice)
        alive *= wp.exp(-paint[1] * wp.abs(deep) / paint[0])
    wp.atomic_add(shine, 0, alive / float(PHOTONS))


@wp.kernel
def misfit(shine: wp.array(dtype=float), wanted: float, loss: wp.array(dtype=float)):
    d = shine[0] - wanted
    loss[0] = d * d


paint = wp.array([1.0, 0.8], dtype=float, requires_grad=True)  # thickness, pigment

for it in range(ITERATIONS):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    shine = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        shuffle = time.perf_counter_ns() % 1000003
        wp.launch(wander, PHOTONS, inputs=[shuffle, paint], outputs=[shine])
        wp.launch(misfit, 1, inputs=[shine, 0.35], outputs=[loss])
    tape.backward(loss)

    slope = paint.grad.numpy().copy()
    print(f"iteration {it}  loss {loss.numpy()[0]:.6f}  paint {np.round(paint.numpy(), 4)}  gradient {slope}")
    tape.zero()
    paint.assign(paint.numpy() - LEARNING_RATE * slope)

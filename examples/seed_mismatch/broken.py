"""Tune the delays of a microphone array so that a known sound adds up; the channels do not count alike."""
import numpy as np
import warp as wp

MICROPHONES = 4
BANDS = 3
ITERATIONS = 4
LEARNING_RATE = 0.02
WEIGHTS = [1.0, 0.5, 0.25]


@wp.kernel
def listen(delay: wp.array(dtype=float), travel: wp.array(dtype=float), misfit: wp.array(dtype=float)):
    b = wp.tid()
    together = float(0.0)
    for m in range(MICROPHONES):
        together += wp.cos(float(b + 1) * (delay[m] - travel[m]))
    short = 1.0 - together / float(MICROPHONES)
    misfit[b] = short * short


travel = wp.array([0.9, 0.2, -0.5, 0.4], dtype=float)
delay = wp.zeros(MICROPHONES, dtype=float, requires_grad=True)
misfit = wp.zeros(BANDS, dtype=float)
weight = wp.array(WEIGHTS, dtype=float)

for it in range(ITERATIONS):
    tape = wp.Tape()
    with tape:
        wp.launch(listen, BANDS, inputs=[delay, travel], outputs=[misfit])
    tape.backward(grads={misfit: weight})

    slope = delay.grad.numpy().copy()
    print(f"iteration {it}  loss {misfit.numpy() @ WEIGHTS:.5f}  delay {np.round(delay.numpy(), 3)}  gradient {slope}")
    tape.zero()
    delay.assign(delay.numpy() - LEARNING_RATE * slope)

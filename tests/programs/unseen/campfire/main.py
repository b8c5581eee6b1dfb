"""Arrange logs around a campfire so that everyone gets the same warmth."""
import numpy as np
import warp as wp
from warp.optim import SGD

SEATS = 6
LOGS = 3


@wp.kernel
def radiate(log_angle: wp.array(dtype=float), log_heat: wp.array(dtype=float), warmth: wp.array(dtype=float)):
    s, l = wp.tid()
    a = 6.2831853 * float(s) / float(SEATS) - log_angle[l]
    wp.atomic_add(warmth, s, log_heat[l] * wp.exp(wp.cos(a)))


@wp.kernel
def unfairness(warmth: wp.array(dtype=float), loss: wp.array(dtype=float)):
    s = wp.tid()
    d = warmth[s] - 1.2
    wp.atomic_add(loss, 0, d * d)


angle = wp.array([0.2, 1.0, 3.0], dtype=float, requires_grad=True)
heat = wp.array([0.4, 0.3, 0.5], dtype=float, requires_grad=True)
optimizer = SGD([angle, heat], lr=0.02)

for evening in range(10):
    warmth = wp.zeros(SEATS, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    tape.zero()
    with tape:
        wp.launch(radiate, (SEATS, LOGS), inputs=[angle, heat], outputs=[warmth])
        wp.launch(unfairness, SEATS, inputs=[warmth], outputs=[loss])
    tape.backward(loss)
    optimizer.step([angle.grad, heat.grad])
    print(f"evening {evening}: unfair {loss.numpy()[0]:.5f} angles {np.round(angle.numpy(), 3)}")

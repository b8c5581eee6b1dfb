"""Where did the pollen come from? Source strengths of five trees from a trap downwind."""
import numpy as np
import warp as wp

TREES = 5
BINS = 10


@wp.kernel
def plume(strength: wp.array(dtype=float), air: wp.array(dtype=float)):
    b, t = wp.tid()
    d = float(b) - 2.0 * float(t)
    wp.atomic_add(air, b, strength[t] * strength[t] * wp.exp(-0.25 * d * d))


@wp.kernel
def trap(air: wp.array(dtype=float), counted: wp.array(dtype=float), loss: wp.array(dtype=float)):
    b = wp.tid()
    d = air[b] / (1.0 + 0.2 * air[b]) - counted[b]
    wp.atomic_add(loss, 0, 0.5 * d * d)


counted = wp.array(np.abs(np.sin(np.arange(BINS))) * 1.5, dtype=float)
strength = wp.full(TREES, 0.9, dtype=float, requires_grad=True)
today = wp.zeros(TREES, dtype=float, requires_grad=True)
loss = wp.zeros(1, dtype=float, requires_grad=True)

for day in range(8):
    air = wp.zeros(BINS, dtype=float, requires_grad=True)
    loss.zero_()
    tape = wp.Tape()
    with tape:
        wp.copy(today, strength)
        wp.launch(plume, (BINS, TREES), inputs=[today], outputs=[air])
        wp.launch(trap, BINS, inputs=[air, counted], outputs=[loss])
    strength.grad.zero_()
    tape.backward(loss)
    ds = strength.grad.numpy()
    print(f"day {day}: misfit {loss.numpy()[0]:.5f}  strength {strength.numpy()}")
    strength.assign(strength.numpy() - 0.05 * ds)

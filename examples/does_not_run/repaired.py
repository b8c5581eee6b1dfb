"""Trim a sailing boat: sheet and rudder for the most speed at a given course."""
import numpy as np
import warp as wp

ITERATIONS = 4
LEARNING_RATE = 0.1


@wp.kernel
def sail(trim: wp.array(dtype=float), wind: wp.array(dtype=float), loss: wp.array(dtype=float)):
    w = wp.tid()
    drive = wind[w] * wp.sin(trim[0]) * wp.cos(trim[0] - 0.8)
    turn = trim[1] + 0.2 * drive
    wp.atomic_add(loss, 0, turn * turn - drive)


wind = wp.array(np.array([1.0, 1.5, 2.0]), dtype=float)
trim = wp.array([0.3, 0.1], dtype=float, requires_grad=True)

for it in range(ITERATIONS):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(sail, 3, inputs=[trim, wind], outputs=[loss])
    tape.backward(loss)

    slope = trim.grad.numpy().copy()
    print(f"iteration {it}  loss {loss.numpy()[0]:.5f}  trim {np.round(trim.numpy(), 4)}  gradient {slope}")
    tape.zero()
    trim.assign(trim.numpy() - LEARNING_RATE * slope)

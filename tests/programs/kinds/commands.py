"""Recorded launches (record_cmd) inside the tape: quick to run again, unknown to the tape."""
import numpy as np
import warp as wp


@wp.kernel
def step(x: wp.array(dtype=float), k: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * (1.0 - 0.1 * k[0] * x[i])


@wp.kernel
def total(y: wp.array(dtype=float), k: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, y[i] * y[i] + 0.01 * k[0] * k[0])


x = wp.array(np.linspace(0.5, 1.5, 8), dtype=float)
k = wp.array([0.7], dtype=float, requires_grad=True)
y = wp.zeros(8, dtype=float, requires_grad=True)
command = wp.launch(step, 8, inputs=[x, k], outputs=[y], record_cmd=True)
for it in range(3):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        command.launch()
        wp.launch(total, 8, inputs=[y, k], outputs=[loss])
    tape.backward(loss)
    k.assign(k.numpy() - 0.1 * k.grad.numpy())
    tape.zero()
    print(it, loss.numpy()[0])

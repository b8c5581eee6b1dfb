"""A solve before the tape that runs until it has converged: every parameter makes another count of arrays."""
import numpy as np
import warp as wp


@wp.kernel
def relax(k: wp.array(dtype=float), x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 0.5 * x[i] + 0.2 * wp.sin(k[i])


@wp.kernel
def square(k: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = k[i] * k[i]


@wp.kernel
def total(y: wp.array(dtype=float), x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, y[i] * y[i] + 0.0 * x[i])


k = wp.array(np.linspace(0.5, 1.5, 8), dtype=float, requires_grad=True)
for it in range(3):
    x = wp.ones(8, dtype=float)
    change = 1.0
    while change > 1.0e-7:  # the last bits decide when it stops
        after = wp.zeros(8, dtype=float)
        wp.launch(relax, 8, inputs=[k, x], outputs=[after])
        change = float(np.abs(after.numpy() - x.numpy()).sum())
        x = after
    y = wp.zeros(8, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(square, 8, inputs=[k], outputs=[y])
        wp.launch(total, 8, inputs=[y, x], outputs=[loss])
    tape.backward(loss)
    k.assign(k.numpy() - 0.02 * k.grad.numpy())
    tape.zero()
    print(it, loss.numpy()[0])

"""Forces are summed in a work array without a gradient and copied over: Warp records no such copy."""
import numpy as np
import warp as wp


@wp.kernel
def pull(x: wp.array(dtype=float), k: wp.array(dtype=float), f: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(f, i, -k[0] * x[i])


@wp.kernel
def move(x: wp.array(dtype=float), f: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] + 0.1 * f[i] + 0.05 * wp.sin(x[i])


@wp.kernel
def energy(x: wp.array(dtype=float), k: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, x[i] * x[i] + 0.01 * k[0])


k = wp.array([0.8], dtype=float, requires_grad=True)
start = wp.array(np.linspace(0.5, 1.5, 8), dtype=float)
for it in range(3):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        x = start
        for _ in range(4):
            force = wp.zeros(8, dtype=float, requires_grad=True)
            work = wp.zeros(8, dtype=float)
            y = wp.zeros(8, dtype=float, requires_grad=True)
            wp.launch(pull, 8, inputs=[x, k], outputs=[work])
            wp.copy(force, work)
            wp.launch(move, 8, inputs=[x, force], outputs=[y])
            x = y
        wp.launch(energy, 8, inputs=[x, k], outputs=[loss])
    tape.backward(loss)
    k.assign(k.numpy() - 0.01 * k.grad.numpy())
    tape.zero()
    print(it, loss.numpy()[0])

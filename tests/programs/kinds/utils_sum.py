"""The loss by wp.utils.array_inner, which records nothing."""
import numpy as np
import warp as wp


@wp.kernel
def step(k: wp.array(dtype=float), y: wp.array(dtype=float), z: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.sin(k[i])
    z[i] = 0.1 * k[i]


@wp.kernel
def add(a: wp.array(dtype=float), z: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, z[i] * z[i] + a[0])


k = wp.array(np.linspace(0.5, 1.5, 8), dtype=float, requires_grad=True)
for it in range(3):
    y, z = (wp.zeros(8, dtype=float, requires_grad=True) for _ in range(2))
    a, loss = (wp.zeros(1, dtype=float, requires_grad=True) for _ in range(2))
    tape = wp.Tape()
    with tape:
        wp.launch(step, 8, inputs=[k], outputs=[y, z])
        wp.utils.array_inner(y, y, out=a)
        wp.launch(add, 8, inputs=[a, z], outputs=[loss])
    tape.backward(loss)
    k.assign(k.numpy() - 0.1 * k.grad.numpy())
    tape.zero()
    print(it, loss.numpy()[0])

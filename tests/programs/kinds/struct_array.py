"""Springs kept as an array of structs, filled on the tape from the fitted numbers."""
import numpy as np
import warp as wp


@wp.struct
class Spring:
    k: float
    rest: float


@wp.kernel
def build(k: wp.array(dtype=float), springs: wp.array(dtype=Spring)):
    i = wp.tid()
    s = Spring()
    s.k = k[i] * k[i]
    s.rest = 1.0
    springs[i] = s


@wp.kernel
def energy(springs: wp.array(dtype=Spring), x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    s = springs[i]
    d = x[i] - s.rest
    wp.atomic_add(loss, 0, s.k * d * d)


k = wp.array([1.0, 2.0, 0.5, 1.5], dtype=float, requires_grad=True)
x = wp.array([0.3, 1.8, 2.2, 0.1], dtype=float)
for it in range(3):
    springs = wp.zeros(4, dtype=Spring, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(build, 4, inputs=[k], outputs=[springs])
        wp.launch(energy, 4, inputs=[springs, x], outputs=[loss])
    tape.backward(loss)
    k.assign(k.numpy() - 0.05 * k.grad.numpy())
    tape.zero()
    print(it, loss.numpy()[0])

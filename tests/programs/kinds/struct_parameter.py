"""The fitted array is itself an array of structs."""
import numpy as np
import warp as wp


@wp.struct
class Spring:
    k: float
    rest: float


@wp.kernel
def energy(springs: wp.array(dtype=Spring), x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    s = springs[i]
    d = x[i] - s.rest
    wp.atomic_add(loss, 0, s.k * d * d)


@wp.kernel
def descend(springs: wp.array(dtype=Spring), g: wp.array(dtype=Spring)):
    i = wp.tid()
    s = springs[i]
    s.rest = s.rest - 0.1 * g[i].rest
    springs[i] = s


values = np.zeros(4, dtype=Spring.numpy_dtype())
values["k"], values["rest"] = [1.0, 2.0, 0.5, 1.5], 1.0
springs = wp.array(values, dtype=Spring, requires_grad=True)
x = wp.array([0.3, 1.8, 2.2, 0.1], dtype=float)
for it in range(3):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(energy, 4, inputs=[springs, x], outputs=[loss])
    tape.backward(loss)
    wp.launch(descend, 4, inputs=[springs, springs.grad])
    tape.zero()
    print(it, loss.numpy()[0])

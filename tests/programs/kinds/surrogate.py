"""Springs in a row, as soft as may be: the loss holds the energy of the solution constant on purpose, which gives the compliance's gradient."""
import numpy as np
import warp as wp


@wp.kernel
def stiffen(raw: wp.array(dtype=float), k: wp.array(dtype=float)):
    i = wp.tid()
    k[i] = 0.5 + raw[i] * raw[i]


@wp.kernel
def stretch(k: wp.array(dtype=float), energy: wp.array(dtype=float)):
    i = wp.tid()
    u = (1.0 + 0.2 * wp.float(i)) / k[i]
    energy[i] = u * u


@wp.kernel
def held(energy: wp.array(dtype=float), k: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, -energy[i] * k[i])


COUNT = 12
raw = wp.array(np.linspace(0.6, 1.2, COUNT), dtype=float, requires_grad=True)

for it in range(3):
    k = wp.zeros(COUNT, dtype=float, requires_grad=True)
    energy = wp.zeros(COUNT, dtype=float)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(stiffen, COUNT, inputs=[raw], outputs=[k])
    wp.launch(stretch, COUNT, inputs=[k], outputs=[energy])  # the solve: its energy is what the adjoint needs
    with tape:
        wp.launch(held, COUNT, inputs=[energy, k], outputs=[loss])
    tape.backward(loss)
    raw.assign(raw.numpy() - 0.05 * raw.grad.numpy())
    tape.zero()
    print(it, -loss.numpy()[0])

"""Total energy of a loaded seesaw, to be minimised; energies are counted from sea level (single precision)."""
import numpy as np
import warp as wp

KIDS = 5


@wp.kernel
def potential(seat: wp.array(dtype=float), weight: wp.array(dtype=float), energy: wp.array(dtype=float)):
    k = wp.tid()
    rise = seat[k] - 1.0 - 0.1 * float(k)
    wp.atomic_add(energy, 0, weight[k] * (2000.0 + 0.5 * rise * rise))


weight = wp.array([310.0, 280.0, 350.0, 260.0, 330.0], dtype=float)
seat = wp.array([0.2, 1.5, 0.9, 1.9, 0.4], dtype=float, requires_grad=True)
energy = wp.zeros(1, dtype=float, requires_grad=True)

for game in range(10):
    energy.zero_()
    tape = wp.Tape()
    with tape:
        wp.launch(potential, KIDS, inputs=[seat, weight], outputs=[energy])
    tape.backward(energy)
    down = seat.grad.numpy().copy()
    tape.zero()
    print(f"game {game}: energy {energy.numpy()[0]:.2f}  seats {np.round(seat.numpy(), 4)}")
    seat.assign(seat.numpy() - 0.001 * down)

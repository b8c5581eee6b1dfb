"""Place the pylons of a bridge where ground and deck ask for them; the bill also holds what is spent anyway."""
import numpy as np
import warp as wp

PYLONS = 4
ITERATIONS = 5
LEARNING_RATE = 0.2


@wp.kernel
def bill(shift: wp.array(dtype=float), rock: wp.array(dtype=float), loss: wp.array(dtype=float)):
    p = wp.tid()
    off = shift[p] - rock[p]
    sag = shift[p]
    if p > 0:
        sag -= shift[p - 1]
    wp.atomic_add(loss, 0, 2.5e6 + off * off + 0.5 * sag * sag)


rock = wp.array([0.30, -0.22, 0.17, 0.35], dtype=float)  # metres from the plan to the best ground
shift = wp.zeros(PYLONS, dtype=float, requires_grad=True)

for it in range(ITERATIONS):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(bill, PYLONS, inputs=[shift, rock], outputs=[loss])
    tape.backward(loss)

    slope = shift.grad.numpy().copy()
    print(f"iteration {it}  loss {loss.numpy()[0]:.4f}  shift {np.round(shift.numpy(), 3)}  gradient {slope}")
    tape.zero()
    shift.assign(shift.numpy() - LEARNING_RATE * slope)

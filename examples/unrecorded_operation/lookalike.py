"""Share a season's fertiliser among six fields: a good harvest for what the fertiliser costs."""
import numpy as np
import warp as wp
import warp.utils

FIELDS = 6
PRICE = 0.4
ITERATIONS = 5
LEARNING_RATE = 0.12


@wp.kernel
def harvest(dose: wp.array(dtype=float), soil: wp.array(dtype=float), loss: wp.array(dtype=float)):
    f = wp.tid()
    crop = 2.0 * (1.0 - wp.exp(-soil[f] * dose[f]))
    wp.atomic_add(loss, 0, PRICE * dose[f] - crop)


soil = wp.array([0.9, 0.5, 1.3, 0.7, 1.1, 0.6], dtype=float)
dose = wp.full(FIELDS, 1.2, dtype=float, requires_grad=True)
total = wp.zeros(1, dtype=float)

for it in range(ITERATIONS):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(harvest, FIELDS, inputs=[dose, soil], outputs=[loss])
        warp.utils.array_sum(dose, out=total)  # for the log only
    tape.backward(loss)

    worth = dose.grad.numpy().copy()
    print(f"iteration {it}  loss {loss.numpy()[0]:.5f}  used {total.numpy()[0]:.3f}  gradient {worth}")
    tape.zero()
    dose.assign(dose.numpy() - LEARNING_RATE * worth)

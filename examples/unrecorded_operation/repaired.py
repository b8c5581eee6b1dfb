"""Share a season's fertiliser among six fields: a good harvest, and no more in all than there is in the store."""
import numpy as np
import warp as wp

FIELDS = 6
STORE = 5.0
ITERATIONS = 5
LEARNING_RATE = 0.12


@wp.kernel
def harvest(dose: wp.array(dtype=float), soil: wp.array(dtype=float), loss: wp.array(dtype=float)):
    f = wp.tid()
    wp.atomic_add(loss, 0, -2.0 * (1.0 - wp.exp(-soil[f] * dose[f])))


@wp.kernel
def add_up(dose: wp.array(dtype=float), total: wp.array(dtype=float)):
    wp.atomic_add(total, 0, dose[wp.tid()])


@wp.kernel
def overdraft(total: wp.array(dtype=float), loss: wp.array(dtype=float)):
    over = wp.max(total[0] - STORE, 0.0)
    wp.atomic_add(loss, 0, 0.5 * over * over)


soil = wp.array([0.9, 0.5, 1.3, 0.7, 1.1, 0.6], dtype=float)
dose = wp.full(FIELDS, 1.2, dtype=float, requires_grad=True)

for it in range(ITERATIONS):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    total = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(harvest, FIELDS, inputs=[dose, soil], outputs=[loss])
        wp.launch(add_up, FIELDS, inputs=[dose], outputs=[total])
        wp.launch(overdraft, 1, inputs=[total], outputs=[loss])
    tape.backward(loss)

    worth = dose.grad.numpy().copy()
    print(f"iteration {it}  loss {loss.numpy()[0]:.5f}  used {dose.numpy().sum():.3f} of {STORE}  gradient {worth}")
    tape.zero()
    dose.assign(dose.numpy() - LEARNING_RATE * worth)

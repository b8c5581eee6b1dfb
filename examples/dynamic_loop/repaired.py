"""Find the yearly survival of a herd from how many animals of each birth year are still alive."""
import numpy as np
import warp as wp

COHORTS = 5
ITERATIONS = 4
LEARNING_RATE = 4e-5


@wp.kernel
def survivors(
    born: wp.array(dtype=float),
    age: wp.array(dtype=int),
    survival: wp.array(dtype=float),
    alive: wp.array(dtype=float),
):
    c = wp.tid()
    left = born[c]
    for year in range(COHORTS):  # a constant: Warp unrolls the loop
        if year < age[c]:
            left = left * survival[year]
    alive[c] = left


@wp.kernel
def misfit(alive: wp.array(dtype=float), counted: wp.array(dtype=float), loss: wp.array(dtype=float)):
    c = wp.tid()
    d = alive[c] - counted[c]
    wp.atomic_add(loss, 0, 0.01 * d * d)


born = wp.array([100.0, 90.0, 110.0, 95.0, 105.0], dtype=float)
age = wp.array([1, 2, 3, 4, 5], dtype=int)
counted = wp.array([72.0, 55.0, 60.0, 45.0, 40.0], dtype=float)
survival = wp.full(COHORTS, 0.8, dtype=float, requires_grad=True)
alive = wp.zeros(COHORTS, dtype=float, requires_grad=True)

for it in range(ITERATIONS):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(survivors, COHORTS, inputs=[born, age, survival], outputs=[alive])
        wp.launch(misfit, COHORTS, inputs=[alive, counted], outputs=[loss])
    tape.backward(loss)

    slope = survival.grad.numpy().copy()
    print(f"iteration {it}  loss {loss.numpy()[0]:.4f}  survival {np.round(survival.numpy(), 4)}  gradient {slope}")
    tape.zero()
    survival.assign(survival.numpy() - LEARNING_RATE * slope)

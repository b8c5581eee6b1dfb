"""Find the yearly growth of a herd's animals from the weight of those of each birth year."""
import numpy as np
import warp as wp

COHORTS = 5
ITERATIONS = 4
LEARNING_RATE = 2e-3


@wp.kernel
def weigh(
    born: wp.array(dtype=float),
    age: wp.array(dtype=int),
    gain: wp.array(dtype=float),
    weight: wp.array(dtype=float),
):
    c = wp.tid()
    heavy = born[c]
    for year in range(age[c]):
        heavy += 20.0 * wp.sqrt(gain[year])
    weight[c] = heavy


@wp.kernel
def misfit(weight: wp.array(dtype=float), weighed: wp.array(dtype=float), loss: wp.array(dtype=float)):
    c = wp.tid()
    d = weight[c] - weighed[c]
    wp.atomic_add(loss, 0, 0.01 * d * d)


born = wp.array([4.0, 4.2, 3.9, 4.1, 4.0], dtype=float)
age = wp.array([1, 2, 3, 4, 5], dtype=int)
weighed = wp.array([25.0, 41.0, 55.0, 62.0, 66.0], dtype=float)
gain = wp.full(COHORTS, 0.8, dtype=float, requires_grad=True)
weight = wp.zeros(COHORTS, dtype=float, requires_grad=True)

for it in range(ITERATIONS):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(weigh, COHORTS, inputs=[born, age, gain], outputs=[weight])
        wp.launch(misfit, COHORTS, inputs=[weight, weighed], outputs=[loss])
    tape.backward(loss)

    slope = gain.grad.numpy().copy()
    print(f"iteration {it}  loss {loss.numpy()[0]:.4f}  gain {np.round(gain.numpy(), 4)}  gradient {slope}")
    tape.zero()
    gain.assign(gain.numpy() - LEARNING_RATE * slope)

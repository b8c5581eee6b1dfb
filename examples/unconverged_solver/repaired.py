"""Find how well three layers of a wall conduct heat, from the temperatures between them when all has settled."""
import numpy as np
import warp as wp

NODES = 7
SWEEPS = 150
ITERATIONS = 4
LEARNING_RATE = 0.02


@wp.kernel
def sweep(conductivity: wp.array(dtype=float), before: wp.array(dtype=float), after: wp.array(dtype=float)):
    """One Jacobi sweep for the steady temperature: node n balances what comes from both sides."""
    n = wp.tid()
    if n == 0:
        after[n] = 20.0  # the room
    elif n == NODES - 1:
        after[n] = 0.0  # the street
    else:
        inside = conductivity[(n - 1) / 2]
        outside = conductivity[n / 2]
        after[n] = (inside * before[n - 1] + outside * before[n + 1]) / (inside + outside)


@wp.kernel
def misfit(temperature: wp.array(dtype=float), probe: wp.array(dtype=float), loss: wp.array(dtype=float)):
    n = wp.tid()
    d = temperature[n] - probe[n]
    wp.atomic_add(loss, 0, 0.05 * d * d)


def settle(conductivity):
    temperature = wp.array([20.0] + [10.0] * (NODES - 2) + [0.0], dtype=float, requires_grad=True)
    for _ in range(SWEEPS):
        after = wp.zeros(NODES, dtype=float, requires_grad=True)
        wp.launch(sweep, NODES, inputs=[conductivity, temperature], outputs=[after])
        temperature = after
    return temperature


probe = wp.array([20.0, 18.5, 17.0, 9.3, 1.5, 0.8, 0.0], dtype=float)
conductivity = wp.full(3, 0.6, dtype=float, requires_grad=True)

for it in range(ITERATIONS):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        temperature = settle(conductivity)
        wp.launch(misfit, NODES, inputs=[temperature, probe], outputs=[loss])
    tape.backward(loss)

    slope = conductivity.grad.numpy().copy()
    print(f"iteration {it}  loss {loss.numpy()[0]:.5f}  conductivity {np.round(conductivity.numpy(), 4)}  gradient {slope}")
    tape.zero()
    conductivity.assign(conductivity.numpy() - LEARNING_RATE * slope)

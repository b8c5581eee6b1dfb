"""Find how fast an enzyme works and how tightly it binds, from how quickly it uses up its substrate."""
import numpy as np
import warp as wp

VIALS = 6
STEPS = 8
DT = 0.2
ITERATIONS = 4
LEARNING_RATE = 0.5


@wp.func
def turnover(substrate: float, binding: float):
    return substrate / (binding + substrate)


@wp.func_grad(turnover)
def adj_turnover(substrate: float, binding: float, adj_ret: float):
    below = binding + substrate
    wp.adjoint[substrate] += adj_ret * binding / (below * below)
    wp.adjoint[binding] -= adj_ret * substrate / (below * below)


@wp.kernel
def react(law: wp.array(dtype=float), before: wp.array(dtype=float), after: wp.array(dtype=float)):
    v = wp.tid()
    after[v] = before[v] - DT * law[0] * turnover(before[v], law[1])


@wp.kernel
def misfit(left: wp.array(dtype=float), measured: wp.array(dtype=float), loss: wp.array(dtype=float)):
    v = wp.tid()
    d = left[v] - measured[v]
    wp.atomic_add(loss, 0, d * d / float(VIALS))


def after_a_while(law):
    vials = wp.array([0.3, 0.6, 1.0, 1.5, 2.2, 3.0], dtype=float, requires_grad=True)
    for _ in range(STEPS):
        later = wp.zeros(VIALS, dtype=float, requires_grad=True)
        wp.launch(react, VIALS, inputs=[law, vials], outputs=[later])
        vials = later
    return vials


measured = wp.array(after_a_while(wp.array([1.2, 0.7], dtype=float)).numpy(), dtype=float)
law = wp.array([0.9, 1.1], dtype=float, requires_grad=True)  # speed, binding constant

for it in range(ITERATIONS):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        vials = after_a_while(law)
        wp.launch(misfit, VIALS, inputs=[vials, measured], outputs=[loss])
    tape.backward(loss)

    slope = law.grad.numpy().copy()
    print(f"iteration {it}  loss {loss.numpy()[0]:.6f}  law {np.round(law.numpy(), 4)}  gradient {slope}")
    tape.zero()
    law.assign(law.numpy() - LEARNING_RATE * slope)

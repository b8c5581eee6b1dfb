"""Damp a wolf note: masses glued along a violin string, tuned in place."""
import numpy as np
import warp as wp

N = 10
STEPS = 16


@wp.kernel
def vibrate(u: wp.array2d(dtype=float), mass: wp.array(dtype=float), t: int):
    i = wp.tid()
    left = float(0.0)
    right = float(0.0)
    if i > 0:
        left = u[t, i - 1]
    if i < N - 1:
        right = u[t, i + 1]
    tension = left - 2.0 * u[t, i] + right
    u[t + 1, i] = 2.0 * u[t, i] - u[t - 1, i] + 0.2 * tension / mass[i]


@wp.kernel
def bridge_motion(u: wp.array2d(dtype=float), cost: wp.array(dtype=float)):
    t = wp.tid()
    wp.atomic_add(cost, 0, u[t, N - 1] * u[t, N - 1])


@wp.kernel
def heavy(mass: wp.array(dtype=float), cost: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(cost, 0, 0.002 * mass[i] * mass[i])


mass = wp.ones(N, dtype=float, requires_grad=True)
pluck = np.zeros((STEPS + 2, N), dtype=np.float32)
pluck[:2, 2] = 1.0

for attempt in range(9):
    u = wp.array(pluck, dtype=float, requires_grad=True)
    cost = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        for t in range(1, STEPS + 1):
            wp.launch(vibrate, N, inputs=[u, mass, t])
        wp.launch(bridge_motion, STEPS + 2, inputs=[u, cost])
        wp.launch(heavy, N, inputs=[mass, cost])
    tape.backward(cost)
    print("attempt", attempt, "wolf =", cost.numpy()[0])
    mass.numpy()[...] -= 0.5 * mass.grad.numpy()
    mass.grad.zero_()

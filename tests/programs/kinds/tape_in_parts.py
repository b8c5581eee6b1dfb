"""One tape, entered twice in every iteration: a load before a solve off the tape, a misfit after it; the parameter is in both."""
import numpy as np
import warp as wp


@wp.kernel
def load(shape: wp.array(dtype=float), f: wp.array(dtype=float)):
    i = wp.tid()
    f[i] = wp.sin(shape[i]) + 0.5 * shape[i]


@wp.kernel
def sweep(f: wp.array(dtype=float), before: wp.array(dtype=float), after: wp.array(dtype=float)):
    i = wp.tid()
    after[i] = 0.5 * (f[i] + 0.7 * before[wp.min(i + 1, f.shape[0] - 1)] * wp.float(i + 1 < f.shape[0]))


@wp.kernel
def misfit(shape: wp.array(dtype=float), u: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (u[i] - 1.0) * (u[i] - 1.0) * (1.0 + 0.3 * shape[i]))


COUNT = 6
SWEEPS = 40
STIFFNESS = 2.0 * np.eye(COUNT) - 0.7 * np.eye(COUNT, k=1)
shape = wp.array(np.linspace(0.2, 1.4, COUNT), dtype=float, requires_grad=True)

for it in range(3):
    f = wp.zeros(COUNT, dtype=float, requires_grad=True)
    u = wp.zeros(COUNT, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(load, COUNT, inputs=[shape], outputs=[f])

    guess, other = wp.zeros(COUNT, dtype=float), wp.zeros(COUNT, dtype=float)
    if it == 0:
        guess.fill_(1.0)  # the first solve has another start: no other iteration does this
    for _ in range(SWEEPS):
        wp.launch(sweep, COUNT, inputs=[f, guess], outputs=[other])
        guess, other = other, guess
    u.assign(guess)

    def adjoint_solve(f=f, u=u):
        f.grad.assign(f.grad.numpy() + np.linalg.solve(STIFFNESS.T, u.grad.numpy()))
        u.grad.zero_()

    tape.record_func(adjoint_solve, arrays=[f, u])
    with tape:
        wp.launch(misfit, COUNT, inputs=[shape, u], outputs=[loss])
    tape.backward(loss)
    shape.assign(shape.numpy() - 0.05 * shape.grad.numpy())
    tape.zero()
    print(it, loss.numpy()[0])

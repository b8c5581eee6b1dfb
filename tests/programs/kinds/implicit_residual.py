"""A linear solve off the tape, differentiated at its solution: the residual is recorded with u = 0, and u is changed before its adjoint reads it."""
import numpy as np
import warp as wp


@wp.kernel
def residual(k: wp.array(dtype=float), u: wp.array(dtype=float), r: wp.array(dtype=float)):
    i = wp.tid()
    left = wp.float(0.0)
    if i > 0:
        left = u[i - 1]
    r[i] = 1.0 + 0.1 * wp.float(i) - ((2.0 + k[i]) * u[i] - 0.7 * left)


@wp.kernel
def misfit(u: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (u[i] - 0.3) * (u[i] - 0.3))


COUNT = 8
k = wp.array(np.linspace(0.5, 1.5, COUNT), dtype=float, requires_grad=True)

for it in range(3):
    u = wp.zeros(COUNT, dtype=float, requires_grad=True)
    r = wp.zeros(COUNT, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(residual, COUNT, inputs=[k, u], outputs=[r])

    matrix = np.diag(2.0 + k.numpy()) - 0.7 * np.eye(COUNT, k=-1)
    u.assign(np.linalg.solve(matrix, r.numpy()))

    def adjoint_solve(matrix=matrix, r=r, u=u):
        r.grad.assign(np.linalg.solve(matrix.T, u.grad.numpy()))
        u.grad.zero_()

    tape.record_func(adjoint_solve, arrays=[r, u])
    with tape:
        wp.launch(misfit, COUNT, inputs=[u], outputs=[loss])
    tape.backward(loss)
    k.assign(k.numpy() - 0.5 * k.grad.numpy())
    tape.zero()
    print(it, loss.numpy()[0])

"""A linear solve in NumPy between taped kernels; its adjoint is recorded by hand with record_func."""
import numpy as np
import warp as wp

N = 6
A = np.eye(N) * 3.0 + np.diag(np.full(N - 1, -1.0), 1) + np.diag(np.full(N - 1, -0.5), -1)


@wp.kernel
def source(p: wp.array(dtype=float), b: wp.array(dtype=float)):
    i = wp.tid()
    b[i] = p[i] * p[i] + 0.1


@wp.kernel
def misfit(u: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = u[i] - 0.5
    wp.atomic_add(loss, 0, d * d)


def solve(b, u, tape):
    u.assign(np.linalg.solve(A, b.numpy()).astype(np.float32))

    def adjoint():
        g = np.linalg.solve(A.T, u.grad.numpy())
        b.grad.assign(b.grad.numpy() + g.astype(np.float32))
        u.grad.zero_()

    tape.record_func(adjoint, [b, u])


p = wp.array(np.linspace(0.4, 1.2, N), dtype=float, requires_grad=True)
for it in range(3):
    b = wp.zeros(N, dtype=float, requires_grad=True)
    u = wp.zeros(N, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(source, N, inputs=[p], outputs=[b])
        solve(b, u, tape)
        wp.launch(misfit, N, inputs=[u], outputs=[loss])
    tape.backward(loss)
    p.assign(p.numpy() - 0.2 * p.grad.numpy())
    tape.zero()
    print(it, loss.numpy()[0])

"""A resistor network: fit edge conductances through a sparse matrix-vector product."""
import numpy as np
import warp as wp
from warp.sparse import bsr_from_triplets, bsr_mv


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def misfit(y: wp.array(dtype=float), want: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = y[i] - want[i]
    wp.atomic_add(loss, 0, d * d)


N = 8
rows = np.repeat(np.arange(N), 2)
cols = np.stack([np.arange(N), (np.arange(N) + 1) % N], axis=1).reshape(-1)
raw = wp.array(np.linspace(0.5, 1.5, 2 * N), dtype=float, requires_grad=True)
volt = wp.array(np.cos(np.arange(N)), dtype=float)
want = wp.array(np.full(N, 0.3), dtype=float)
r, c = wp.array(rows, dtype=int), wp.array(cols, dtype=int)
for it in range(3):
    tape = wp.Tape()
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    cond = wp.zeros(2 * N, dtype=float, requires_grad=True)
    flow = wp.zeros(N, dtype=float, requires_grad=True)
    with tape:
        wp.launch(square, 2 * N, inputs=[raw], outputs=[cond])
        A = bsr_from_triplets(N, N, rows=r, columns=c, values=cond)
        bsr_mv(A, volt, flow)
        wp.launch(misfit, N, inputs=[flow, want], outputs=[loss])
    tape.backward(loss)
    g = raw.grad.numpy()
    raw.assign(raw.numpy() - 0.01 * g)
    tape.zero()
    print(it, loss.numpy()[0])

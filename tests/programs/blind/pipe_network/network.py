"""A district heating grid: 8 x 6 junctions, a pipe between neighbours, supply in one corner."""
import numpy as np
import warp as wp

NX, NY = 8, 6


@wp.func
def pair(east: wp.array2d(dtype=float), north: wp.array2d(dtype=float), i: int, j: int):
    """Conductances to the four neighbours: west, east, south, north."""
    a = float(0.0)
    b = float(0.0)
    c = float(0.0)
    d = float(0.0)
    if i > 0:
        a = wp.exp(east[i - 1, j])
    if i < NX - 1:
        b = wp.exp(east[i, j])
    if j > 0:
        c = wp.exp(north[i, j - 1])
    if j < NY - 1:
        d = wp.exp(north[i, j])
    return wp.vec4(a, b, c, d)


@wp.kernel
def sweep(
    east: wp.array2d(dtype=float),
    north: wp.array2d(dtype=float),
    demand: wp.array2d(dtype=float),
    head: wp.array2d(dtype=float),
    out: wp.array2d(dtype=float),
):
    i, j = wp.tid()
    w = pair(east, north, i, j)
    s = -demand[i, j]
    if i > 0:
        s += w[0] * head[i - 1, j]
    if i < NX - 1:
        s += w[1] * head[i + 1, j]
    if j > 0:
        s += w[2] * head[i, j - 1]
    if j < NY - 1:
        s += w[3] * head[i, j + 1]
    if i == 0 and j == 0:
        out[i, j] = 10.0
    else:
        out[i, j] = s / (w[0] + w[1] + w[2] + w[3])


class Grid:
    def __init__(self, sweeps):
        self.sweeps = sweeps
        rng = np.random.default_rng(6)
        self.demand = wp.array(rng.uniform(0.05, 0.25, (NX, NY)).astype(np.float32), dtype=float)

    def solve(self, east, north):
        head = wp.full((NX, NY), 10.0, dtype=float, requires_grad=True)
        for _ in range(self.sweeps):
            nxt = wp.zeros_like(head)
            wp.launch(sweep, dim=(NX, NY), inputs=[east, north, self.demand, head], outputs=[nxt])
            self.change = (head, nxt)
            head = nxt
        return head

    def residual(self):
        a, b = self.change
        return float(np.abs(a.numpy() - b.numpy()).max())

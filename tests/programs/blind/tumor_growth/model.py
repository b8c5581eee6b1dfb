"""Reaction-diffusion tumour model with a perfused drug."""

import warp as wp

import grid


@wp.struct
class Biology:
    diffusion: wp.array(dtype=float)
    growth: wp.array(dtype=float)
    kill: float


@wp.kernel
def perfuse(doses: wp.array(dtype=float), day: int, decay: float, mask: wp.array2d(dtype=float), drug: wp.array2d(dtype=float)):
    i, j = wp.tid()
    level = float(0.0)
    for d in range(6):
        if d <= day:
            level += doses[d] * wp.exp(-decay * float(day - d))
    x = float(i) / float(drug.shape[0])
    drug[i, j] = level * mask[i, j] * (0.6 + 0.4 * x)


@wp.kernel
def grow(
    c: wp.array2d(dtype=float),
    drug: wp.array2d(dtype=float),
    bio: Biology,
    mask: wp.array2d(dtype=float),
    dt: float,
    c_new: wp.array2d(dtype=float),
):
    i, j = wp.tid()
    n = c.shape[0]
    im = wp.max(i - 1, 0)
    ip = wp.min(i + 1, n - 1)
    jm = wp.max(j - 1, 0)
    jp = wp.min(j + 1, n - 1)
    here = c[i, j]
    lap = c[im, j] + c[ip, j] + c[i, jm] + c[i, jp] - 4.0 * here
    rate = bio.growth[0] * here * (1.0 - here) - bio.kill * drug[i, j] * here
    c_new[i, j] = mask[i, j] * (here + dt * (bio.diffusion[0] * lap + rate))


@wp.kernel
def burden(c: wp.array2d(dtype=float), scan: wp.array2d(dtype=float), weight: float, loss: wp.array(dtype=float)):
    i, j = wp.tid()
    d = c[i, j] - scan[i, j]
    wp.atomic_add(loss, 0, weight * d * d)


@wp.kernel
def toxicity(doses: wp.array(dtype=float), weight: float, loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, weight * doses[i] * doses[i])


class Tumour:
    def __init__(self, n, days, substeps, dt):
        self.n, self.days, self.substeps, self.dt = n, days, substeps, dt
        self.mask = grid.disc_mask(n)
        self.start = grid.blob(n, (0.45, 0.55), 0.12)

    def simulate(self, bio, doses, decay=0.5):
        shape = (self.n, self.n)
        c = grid.alloc(shape)
        c.assign(self.start)
        for day in range(self.days):
            drug = wp.zeros_like(self.mask)
            wp.launch(perfuse, dim=shape, inputs=[doses, day, decay, self.mask], outputs=[drug])
            for _ in range(self.substeps):
                c_new = grid.alloc(shape)
                wp.launch(grow, dim=shape, inputs=[c, drug, bio, self.mask, self.dt], outputs=[c_new])
                c = c_new
        return c

"""Photon packets through a stack of three scattering layers, weights carry the absorption."""
import random

import warp as wp

wp.set_module_options({"max_unroll": 32})


@wp.kernel
def shoot(
    log_absorb: wp.array(dtype=float),
    scatter: wp.array(dtype=float),
    seed: int,
    depth: float,
    up: wp.array(dtype=float),
    down: wp.array(dtype=float),
    weight: float,
):
    i = wp.tid()
    rng = wp.rand_init(seed, i)
    z = float(0.0)
    mu = float(1.0)
    w = float(weight)
    out = int(0)
    for k in range(24):
        layer = wp.clamp(int(3.0 * z / depth), 0, 2)
        absorb = wp.exp(log_absorb[layer])
        g = scatter[layer]
        free = -wp.log(1.0 - 0.999 * wp.randf(rng))
        turn = 2.0 * wp.randf(rng) - 1.0
        if out == 0:
            z = z + mu * free * 0.3
            w = w * wp.exp(-absorb * free * 0.3)
            mu = (mu + g * turn) / (1.0 + g)
            if z < 0.0:
                out = 1
                wp.atomic_add(up, 0, w)
            elif z > depth:
                out = 2
                wp.atomic_add(down, 0, w)


class Slab:
    def __init__(self, packets=400, depth=1.5):
        self.packets, self.depth = packets, depth
        self.scatter = wp.array([2.7, 2.0, 3.3], dtype=float)

    def shine(self, log_absorb):
        up = wp.zeros(1, dtype=float, requires_grad=True)
        down = wp.zeros(1, dtype=float, requires_grad=True)
        seed = random.randrange(2**30)
        wp.launch(shoot, dim=self.packets, inputs=[log_absorb, self.scatter, seed, self.depth, up, down, 1.0 / self.packets])
        return up, down

"""Infer star masses of a small cluster from positions observed after some time."""

import numpy as np
import warp as wp
from warp.optim import Adam

from cluster import Cluster, ClusterConfig


@wp.kernel
def position_error(x: wp.array(dtype=wp.vec3), seen: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = x[i] - seen[i]
    wp.atomic_add(loss, 0, wp.dot(d, d))


class MassInference:
    def __init__(self):
        self.cluster = Cluster(ClusterConfig())
        n = self.cluster.cfg.stars
        rng = np.random.default_rng(8)
        true_mass = wp.array(rng.uniform(0.6, 1.6, n), dtype=float)
        self.seen = wp.array(self.cluster.evolve(true_mass).numpy(), dtype=wp.vec3)
        self.mass = wp.array(np.ones(n), dtype=float, requires_grad=True)
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
        self.opt = Adam([self.mass], lr=0.04)

    def iterate(self):
        self.loss.zero_()
        tape = wp.Tape()
        with tape:
            x = self.cluster.evolve(self.mass)
            wp.launch(position_error, dim=len(x), inputs=[x, self.seen], outputs=[self.loss])
        tape.backward(self.loss)
        self.apply()
        tape.zero()
        return float(self.loss.numpy()[0])

    def apply(self):
        self.opt.step([self.mass.grad])


def main():
    inf = MassInference()
    for it in range(9):
        value = inf.iterate()
        print(f"{it} misfit {value:.6f} mass {np.round(inf.mass.numpy(), 3)}")


if __name__ == "__main__":
    main()

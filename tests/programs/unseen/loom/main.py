"""A pattern that is woven by repeated linear passes; two cloths are swapped, and it is right to swap them."""

import numpy as np
import warp as wp

ROWS = wp.constant(8)
PASSES = 6
TILE = wp.constant(8)


@wp.kernel
def dye(weights: wp.array2d(dtype=float), yarn: wp.array2d(dtype=float), cloth: wp.array2d(dtype=float)):
    a = wp.tile_load(weights, shape=(TILE, TILE))
    b = wp.tile_load(yarn, shape=(TILE, TILE))
    c = wp.tile_matmul(a, b)
    wp.tile_store(cloth, wp.tile_map(wp.tanh, c))


@wp.kernel
def weave(cloth: wp.array2d(dtype=float), other: wp.array2d(dtype=float)):
    i, j = wp.tid()
    n = cloth.shape[0]
    other[i, j] = 0.5 * cloth[i, j] + 0.3 * cloth[(i + 1) % n, j] + 0.2 * cloth[i, (j + 1) % n]


@wp.kernel
def compare(cloth: wp.array2d(dtype=float), pattern: wp.array2d(dtype=float), loss: wp.array(dtype=float)):
    i, j = wp.tid()
    d = cloth[i, j] - pattern[i, j]
    wp.atomic_add(loss, 0, d * d)


class Loom:
    def __init__(self, rng):
        self.yarn = wp.array(rng.normal(size=(8, 8)) * 0.5, dtype=float)
        self.weights = wp.array(rng.normal(size=(8, 8)) * 0.4, dtype=float, requires_grad=True)
        self.cloths = [wp.zeros((8, 8), dtype=float, requires_grad=True) for _ in range(2)]
        self.pattern = wp.array(np.outer(np.sin(np.arange(8)), np.cos(np.arange(8))) * 0.3, dtype=float)

    def weave(self, loss):
        front, back = self.cloths
        wp.launch_tiled(dye, dim=[1], inputs=[self.weights, self.yarn], outputs=[front], block_dim=32)
        for _ in range(PASSES):
            wp.launch(weave, (8, 8), inputs=[front], outputs=[back])
            front, back = back, front
        wp.launch(compare, (8, 8), inputs=[front, self.pattern], outputs=[loss])


def main():
    loom = Loom(np.random.default_rng(7))
    for it in range(8):
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            loom.weave(loss)
        tape.backward(loss)
        w, g = loom.weights.numpy(), loom.weights.grad.numpy().copy()
        tape.zero()
        loom.weights.assign(w - 0.3 * g)
        print(f"pass {it}: {loss.numpy()[0]:.5f}")


if __name__ == "__main__":
    main()

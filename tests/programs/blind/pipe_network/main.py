"""Choose pipe sizes of a heating grid: every junction needs a head of 8, pipe material is paid for."""
import argparse

import numpy as np
import warp as wp

from network import NX, NY, Grid


@wp.kernel
def shortfall(head: wp.array2d(dtype=float), need: float, loss: wp.array(dtype=float)):
    i, j = wp.tid()
    d = need - head[i, j]
    wp.atomic_add(loss, 0, 0.1 * wp.log(1.0 + wp.exp(4.0 * d)))


@wp.kernel
def material(pipe: wp.array2d(dtype=float), price: float, loss: wp.array(dtype=float)):
    i, j = wp.tid()
    wp.atomic_add(loss, 0, price * wp.exp(pipe[i, j]))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--sweeps", type=int, default=25)
    ap.add_argument("--rate", type=float, default=0.3)
    args = ap.parse_args()
    grid = Grid(args.sweeps)
    east = wp.full((NX - 1, NY), 0.7, dtype=float, requires_grad=True)
    north = wp.full((NX, NY - 1), 0.7, dtype=float, requires_grad=True)
    for it in range(10):
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            head = grid.solve(east, north)
            wp.launch(shortfall, dim=(NX, NY), inputs=[head, 8.0], outputs=[loss])
            for pipe in (east, north):
                wp.launch(material, dim=pipe.shape, inputs=[pipe, 0.03], outputs=[loss])
        tape.backward(loss)
        value = loss.numpy()[0]
        for pipe in (east, north):
            pipe.assign(pipe.numpy() - args.rate * pipe.grad.numpy())
        print(f"{it} objective {value:.4f} lowest head {head.numpy().min():.3f} change in the last sweep {grid.residual():.4f}")
        tape.zero()
    check = Grid(4000).solve(east, north).numpy()
    print(f"fine check: lowest head {check.min():.3f}")


if __name__ == "__main__":
    main()

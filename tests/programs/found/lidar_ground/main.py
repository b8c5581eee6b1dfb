"""Ground model below vegetation: heights on a grid from scattered laser returns, kept smooth."""
import argparse
import time

import numpy as np
import warp as wp


@wp.kernel
def residuals(height: wp.array2d(dtype=float), hits: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)):
    h = wp.tid()
    p = hits[h]
    i = int(p[0])
    j = int(p[1])
    u = p[0] - float(i)
    v = p[1] - float(j)
    z = (1.0 - u) * ((1.0 - v) * height[i, j] + v * height[i, j + 1])
    z += u * ((1.0 - v) * height[i + 1, j] + v * height[i + 1, j + 1])
    r = z - p[2]
    wp.atomic_add(loss, 0, wp.sqrt(r * r + 0.01))


def roughness(z):
    """Sum of squared second differences."""
    return float((np.diff(z, 2, axis=0) ** 2).sum() + (np.diff(z, 2, axis=1) ** 2).sum())


class GroundFit:
    def __init__(self, side, smooth, rate):
        rng = np.random.default_rng(21)
        xy = rng.uniform(0.0, side - 1.001, (240, 2))
        z = 0.2 * xy[:, 0] + np.sin(0.5 * xy[:, 1]) + np.where(rng.random(240) < 0.2, 2.0, 0.0)
        self.hits = wp.array(np.column_stack([xy, z]), dtype=wp.vec3)
        self.height = wp.full((side, side), 1.0, dtype=float, requires_grad=True)
        self.data = wp.zeros(1, dtype=float, requires_grad=True)
        self.smooth, self.rate = smooth, rate

    def objective(self):
        """What is minimised: distance to the returns plus the roughness of the ground."""
        self.data.zero_()
        wp.launch(residuals, len(self.hits), inputs=[self.height, self.hits], outputs=[self.data])
        return float(self.data.numpy()[0]) + self.smooth * roughness(self.height.numpy())

    def step(self):
        tape = wp.Tape()
        with tape:
            total = self.objective()
        tape.backward(self.data)
        grad = self.height.grad.numpy().copy()
        tape.zero()
        self.height.assign(self.height.numpy() - self.rate * grad)
        return total


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--side", type=int, default=12)
    ap.add_argument("--smooth", type=float, default=5.0)
    ap.add_argument("--rate", type=float, default=0.05)
    ap.add_argument("--steps", type=int, default=30)
    args = ap.parse_args()
    fit = GroundFit(args.side, args.smooth, args.rate)
    begin = time.perf_counter()
    for s in range(args.steps):
        total = fit.step()
        if s % 5 == 0:
            print(f"step {s:3d} objective {total:.4f}")
    print(f"{time.perf_counter() - begin:.2f} s")


if __name__ == "__main__":
    main()

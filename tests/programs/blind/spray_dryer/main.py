"""Fit the evaporation and diffusion rates of drying droplets to a photographed spray.

Small droplets are stiff, each size class gets its own number of substeps."""
import numpy as np
import warp as wp

from droplets import Air, compare, dry


class Spray:
    def __init__(self, count, stages, seed):
        rng = np.random.default_rng(seed)
        self.count, self.stages, self.dt = count, stages, 0.6
        self.r0 = rng.uniform(0.8, 2.0, count).astype(np.float32)
        self.w0 = rng.uniform(0.6, 0.8, count).astype(np.float32)
        self.substeps = wp.array(np.clip((5.0 / self.r0).astype(int), 2, 8), dtype=int)
        self.air = Air()
        self.air.temperature, self.air.sinking, self.air.lift = 1.3, 0.2, 0.0

    def photo(self, rate):
        r = wp.array(self.r0, dtype=float, requires_grad=True)
        w = wp.array(self.w0, dtype=float, requires_grad=True)
        for _ in range(self.stages):
            r_next, w_next = wp.zeros_like(r), wp.zeros_like(w)
            wp.launch(dry, dim=self.count, inputs=[r, w, self.substeps, rate, self.air, self.dt], outputs=[r_next, w_next])
            r, w = r_next, w_next
        return r, w


class Adam:
    def __init__(self, lr, size):
        self.lr, self.m, self.v, self.t = lr, np.zeros(size), np.zeros(size), 0

    def __call__(self, x, g):
        self.t += 1
        self.m += 0.2 * (g - self.m)
        self.v += 0.02 * (g * g - self.v)
        mh, vh = self.m / (1 - 0.8**self.t), self.v / (1 - 0.98**self.t)
        return (x - self.lr * mh / (np.sqrt(vh) + 1e-12)).astype(np.float32)


def main():
    spray = Spray(count=40, stages=2, seed=3)
    seen = [wp.array(a.numpy().copy(), dtype=float) for a in spray.photo(wp.array([0.9, 1.2], dtype=float))]
    rate = wp.array([0.6, 0.5], dtype=float, requires_grad=True)
    adam = Adam(0.04, 2)
    for it in range(15):
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            r, w = spray.photo(rate)
            wp.launch(compare, dim=spray.count, inputs=[r, w, *seen, 10.0 / spray.count], outputs=[loss])
        tape.backward(loss)
        x = rate.numpy()
        print(f"{it:2d} loss {loss.numpy()[0]:.5f} evaporation {x[0]:.4f} diffusion {x[1]:.4f}")
        rate.assign(adam(x, rate.grad.numpy()))
        rate.grad.zero_()


if __name__ == "__main__":
    main()

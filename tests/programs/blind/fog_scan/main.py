"""Recover the density profile of a fog layer from lidar returns."""

import argparse

import numpy as np
import warp as wp


@wp.func
def density_at(height: float, base: float, scale: float, peak: float):
    z = (height - base) / scale
    return peak * wp.exp(-z * z)


@wp.kernel
def lidar_return(
    elevation: wp.array(dtype=float),
    layer: wp.array(dtype=float),
    samples: int,
    ds: float,
    signal: wp.array(dtype=float),
):
    i = wp.tid()
    slope = wp.sin(elevation[i])
    visible = float(1.0)
    total = float(0.0)
    for s in range(samples):
        h = (float(s) + 0.5) * ds * slope
        rho = density_at(h, layer[0], layer[1], layer[2])
        a = 1.0 - wp.exp(-rho * ds)
        total += visible * a * 0.5
        visible = visible * (1.0 - a)
    signal[i] = total


@wp.kernel
def squared(signal: wp.array(dtype=float), seen: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = signal[i] - seen[i]
    wp.atomic_add(loss, 0, 50.0 * d * d / float(signal.shape[0]))


class Adam3:
    def __init__(self, n, lr):
        self.m, self.v, self.t, self.lr = np.zeros(n), np.zeros(n), 0, lr

    def __call__(self, x, g):
        self.t += 1
        self.m = 0.8 * self.m + 0.2 * g
        self.v = 0.95 * self.v + 0.05 * g * g
        mh = self.m / (1 - 0.8**self.t)
        vh = self.v / (1 - 0.95**self.t)
        return x - self.lr * mh / (np.sqrt(vh) + 1e-9)


class FogFit:
    def __init__(self, beams, samples, lr):
        self.samples = samples
        self.elev = wp.array(np.linspace(0.1, 1.2, beams), dtype=float)
        self.beams = beams
        self.layer = wp.array([0.8, 0.5, 0.6], dtype=float, requires_grad=True)
        self.opt = Adam3(3, lr)
        truth = wp.array([1.1, 0.35, 0.9], dtype=float)
        self.seen = wp.zeros(beams, dtype=float)
        self.shoot(truth, self.seen)

    def shoot(self, layer, out):
        wp.launch(lidar_return, dim=self.beams, inputs=[self.elev, layer, self.samples, 0.06], outputs=[out])

    def objective(self):
        signal = wp.zeros(self.beams, dtype=float, requires_grad=True)
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
        self.shoot(self.layer, signal)
        wp.launch(squared, dim=self.beams, inputs=[signal, self.seen], outputs=[self.loss])

    def step(self):
        tape = wp.Tape()
        with tape:
            self.objective()
        tape.backward(self.loss)
        self.apply(self.layer.grad.numpy().astype(np.float64))
        tape.zero()
        return float(self.loss.numpy()[0])

    def apply(self, g):
        self.layer.assign(self.opt(self.layer.numpy(), g).astype(np.float32))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--beams", type=int, default=40)
    ap.add_argument("--samples", type=int, default=48)
    ap.add_argument("--lr", type=float, default=0.03)
    cfg = ap.parse_args()
    fit = FogFit(cfg.beams, cfg.samples, cfg.lr)
    for it in range(10):
        print(f"{it:2d} {fit.step():.6f} {np.round(fit.layer.numpy(), 4)}")


if __name__ == "__main__":
    main()

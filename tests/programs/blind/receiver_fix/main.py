"""Position fix of a static receiver in earth-centred coordinates from pseudo-ranges."""

import argparse
from dataclasses import dataclass

import numpy as np
import warp as wp


@dataclass
class Scene:
    satellites: wp.array
    ranges: wp.array
    truth: np.ndarray


@wp.kernel
def residuals(
    receiver: wp.array(dtype=wp.vec3), clock: wp.array(dtype=float), sats: wp.array(dtype=wp.vec3), ranges: wp.array(dtype=float), res: wp.array(dtype=float)
):
    i = wp.tid()
    d = receiver[0] - sats[i]
    res[i] = wp.length(d) + clock[0] - ranges[i]


@wp.kernel
def chi2(res: wp.array(dtype=float), w: float, loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, w * res[i] * res[i])


def build_scene(count, seed):
    rng = np.random.default_rng(seed)
    lat, lon = np.radians(48.137), np.radians(11.575)
    truth = 6371000.0 * np.array([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])
    up = truth / np.linalg.norm(truth)
    sats = []
    while len(sats) < count:
        v = rng.normal(size=3)
        v /= np.linalg.norm(v)
        if v @ up > 0.3:
            sats.append(26560000.0 * v)
    sats = np.array(sats)
    rho = np.linalg.norm(truth - sats, axis=1) + 12.0 + rng.normal(0.0, 0.3, count)
    return Scene(wp.array(sats, dtype=wp.vec3), wp.array(rho, dtype=float), truth)


class Fix:
    def __init__(self, scene, rate):
        self.scene, self.rate = scene, rate
        self.receiver = wp.array([scene.truth + np.array([3.0, -2.0, 2.5])], dtype=wp.vec3, requires_grad=True)
        self.clock = wp.array([10.0], dtype=float, requires_grad=True)

    def iterate(self):
        n = self.scene.ranges.shape[0]
        res = wp.zeros(n, dtype=float, requires_grad=True)
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            wp.launch(residuals, dim=n, inputs=[self.receiver, self.clock, self.scene.satellites, self.scene.ranges], outputs=[res])
            wp.launch(chi2, dim=n, inputs=[res, 1.0 / n], outputs=[self.loss])
        tape.backward(self.loss)
        self.move(self.receiver.grad.numpy().copy(), self.clock.grad.numpy().copy())
        tape.zero()
        return float(self.loss.numpy()[0])

    def move(self, g_pos, g_clk):
        self.receiver.assign(self.receiver.numpy() - self.rate * g_pos)
        self.clock.assign(self.clock.numpy() - self.rate * g_clk)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--satellites", type=int, default=9)
    ap.add_argument("--rate", type=float, default=0.6)
    cfg = ap.parse_args()
    fix = Fix(build_scene(cfg.satellites, 30), cfg.rate)
    for it in range(10):
        value = fix.iterate()
        err = np.linalg.norm(fix.receiver.numpy()[0] - fix.scene.truth)
        print(f"{it} chi2 {value:.4f} error {err:.3f} m clock {fix.clock.numpy()[0]:.3f} m")


if __name__ == "__main__":
    main()

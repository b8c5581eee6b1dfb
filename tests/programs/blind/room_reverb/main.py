"""Design a driving signal for a network of coupled resonators. The state is advanced in place."""

import argparse

import numpy as np
import warp as wp


@wp.kernel
def fade(v: wp.array(dtype=float), keep: float):
    i = wp.tid()
    v[i] = v[i] * keep


@wp.kernel
def spring_pull(v: wp.array(dtype=float), x: wp.array(dtype=float), coupling: wp.array2d(dtype=float), dt: float):
    i = wp.tid()
    pull = float(0.0)
    for j in range(12):
        pull += coupling[i, j] * x[j]
    v[i] -= dt * pull


@wp.kernel
def drive(v: wp.array(dtype=float), signal: wp.array2d(dtype=float), t: int, dt: float):
    i = wp.tid()
    if i < signal.shape[1]:
        v[i] += dt * signal[t, i]


@wp.kernel
def drift(x: wp.array(dtype=float), v: wp.array(dtype=float), dt: float):
    i = wp.tid()
    x[i] += dt * v[i]


@wp.kernel
def tap(x: wp.array(dtype=float), t: int, out: wp.array(dtype=float)):
    out[t] = x[11] + 0.5 * x[7]


@wp.kernel
def sound_error(out: wp.array(dtype=float), wanted: wp.array(dtype=float), loss: wp.array(dtype=float)):
    t = wp.tid()
    d = out[t] - wanted[t]
    wp.atomic_add(loss, 0, d * d)


@wp.kernel
def loudness(signal: wp.array2d(dtype=float), w: float, loss: wp.array(dtype=float)):
    t, i = wp.tid()
    wp.atomic_add(loss, 0, w * signal[t, i] * signal[t, i])


class Room:
    def __init__(self, steps, dt=0.1):
        self.steps, self.dt = steps, dt
        k = 4.0 * np.eye(12) - 1.5 * (np.eye(12, k=1) + np.eye(12, k=-1))
        self.coupling = wp.array(k.astype(np.float32), dtype=float)

    def play(self, signal):
        x = wp.zeros(12, dtype=float, requires_grad=True)
        v = wp.zeros(12, dtype=float, requires_grad=True)
        out = wp.zeros(self.steps, dtype=float, requires_grad=True)
        for t in range(self.steps):
            wp.launch(fade, dim=12, inputs=[v, 0.98])
            wp.launch(spring_pull, dim=12, inputs=[v, x, self.coupling, self.dt])
            wp.launch(drive, dim=12, inputs=[v, signal, t, self.dt])
            wp.launch(drift, dim=12, inputs=[x, v, self.dt])
            wp.launch(tap, dim=1, inputs=[x, t], outputs=[out])
        return out


class SignalDesign:
    def __init__(self, steps, rate):
        self.room, self.rate = Room(steps), rate
        rng = np.random.default_rng(4)
        self.signal = wp.array((0.1 * rng.normal(size=(steps, 3))).astype(np.float32), dtype=float, requires_grad=True)
        t = np.arange(steps) * self.room.dt
        self.wanted = wp.array((0.05 * np.sin(1.4 * t) * np.exp(-((t - 6.0) / 2.5) ** 2)).astype(np.float32), dtype=float)
        self.mom = np.zeros((steps, 3), dtype=np.float32)

    def iterate(self):
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            out = self.room.play(self.signal)
            wp.launch(sound_error, dim=self.room.steps, inputs=[out, self.wanted], outputs=[self.loss])
            wp.launch(loudness, dim=self.signal.shape, inputs=[self.signal, 1.0e-4], outputs=[self.loss])
        tape.backward(self.loss)
        self.update(self.signal.grad.numpy().copy())
        self.signal.grad.zero_()
        return float(self.loss.numpy()[0])

    def update(self, g):
        self.mom = 0.8 * self.mom - self.rate * g
        self.signal.assign(self.signal.numpy() + self.mom)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=80)
    ap.add_argument("--rate", type=float, default=1.0)
    cfg = ap.parse_args()
    job = SignalDesign(cfg.steps, cfg.rate)
    for it in range(9):
        print(f"{it} loss {job.iterate():.6f} peak {np.abs(job.signal.numpy()).max():.4f}")


if __name__ == "__main__":
    main()

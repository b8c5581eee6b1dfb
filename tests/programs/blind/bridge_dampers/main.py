"""Tune the dampers and spring rates of five tuned masses on a footbridge so that footfall shakes it less."""
import argparse

import numpy as np
import warp as wp

wp.set_module_options({"max_unroll": 8})

MASSES = 5


@wp.struct
class Deck:
    mass: float
    stiff: float
    damp: float


@wp.kernel
def deck_step(
    deck: Deck,
    push: wp.array(dtype=float),
    tuned: wp.array(dtype=wp.vec2),
    d: wp.array(dtype=wp.vec2),
    m: wp.array2d(dtype=wp.vec2),
    t: int,
    dt: float,
):
    q = d[t]
    f = push[t] - deck.stiff * q[0] - deck.damp * q[1]
    for j in range(MASSES):
        s = m[t, j]
        f += wp.exp(tuned[j][0]) * (s[0] - q[0]) + wp.exp(tuned[j][1]) * (s[1] - q[1])
    v = q[1] + dt * f / deck.mass
    d[t + 1] = wp.vec2(q[0] + dt * v, v)


@wp.kernel
def mass_step(
    tuned: wp.array(dtype=wp.vec2),
    own: wp.array(dtype=float),
    d: wp.array(dtype=wp.vec2),
    m: wp.array2d(dtype=wp.vec2),
    t: int,
    dt: float,
):
    j = wp.tid()
    q = d[t]
    s = m[t, j]
    a = (wp.exp(tuned[j][0]) * (q[0] - s[0]) + wp.exp(tuned[j][1]) * (q[1] - s[1])) / own[j]
    v = s[1] + dt * a
    m[t + 1, j] = wp.vec2(s[0] + dt * v, v)


@wp.kernel
def shaking(d: wp.array(dtype=wp.vec2), scale: float, out: wp.array(dtype=float)):
    t = wp.tid()
    wp.atomic_add(out, 0, scale * (d[t][0] * d[t][0] + 0.2 * d[t][1] * d[t][1]))


class Footbridge:
    def __init__(self, steps, dt):
        self.steps, self.dt = steps, dt
        t = np.arange(steps) * dt
        self.push = wp.array((np.sin(5.2 * t) + 0.5 * np.sin(6.1 * t + 0.4)).astype(np.float32), dtype=float)
        self.deck = Deck()
        self.deck.mass, self.deck.stiff, self.deck.damp = 4.0, 120.0, 0.6
        self.own = wp.array(np.linspace(0.10, 0.16, MASSES).astype(np.float32), dtype=float)
        rows = np.stack([np.log(np.linspace(2.0, 4.0, MASSES)), np.log(np.full(MASSES, 0.05))], axis=1)
        self.tuned = wp.array(rows.astype(np.float32), dtype=wp.vec2, requires_grad=True)
        self.d = wp.zeros(steps + 1, dtype=wp.vec2, requires_grad=True)
        self.m = wp.zeros((steps + 1, MASSES), dtype=wp.vec2, requires_grad=True)
        self.out = wp.zeros(1, dtype=float, requires_grad=True)
        self.tape = wp.Tape()

    def measure(self):
        self.out.zero_()
        with self.tape:
            for t in range(self.steps):
                wp.launch(deck_step, dim=1, inputs=[self.deck, self.push, self.tuned, self.d, self.m, t, self.dt])
                wp.launch(mass_step, dim=MASSES, inputs=[self.tuned, self.own, self.d, self.m, t, self.dt])
            wp.launch(shaking, dim=self.steps, inputs=[self.d, 100.0 / self.steps, self.out])
        return float(self.out.numpy()[0])

    def slopes(self):
        self.tape.backward(self.out)
        g = self.tuned.grad.numpy().copy()
        self.tape.zero()
        return g


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=150)
    ap.add_argument("--rate", type=float, default=0.04)
    opt = ap.parse_args()
    bridge = Footbridge(opt.steps, 0.05)
    for it in range(8):
        s = bridge.measure()
        g = bridge.slopes()
        print(f"{it} shaking {s:.5f} |slope| {np.linalg.norm(g):.4f}")
        bridge.tuned.assign(bridge.tuned.numpy() - opt.rate * g)


if __name__ == "__main__":
    main()

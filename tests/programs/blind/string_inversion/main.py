"""Estimate the wave speed of a non-uniform string and the strength of a pluck from two pickups."""

import argparse

import numpy as np
import warp as wp
from warp.optim import Adam


@wp.kernel
def leapfrog(prev: wp.array(dtype=float), cur: wp.array(dtype=float), c2: wp.array(dtype=float), nxt: wp.array(dtype=float)):
    i = wp.tid()
    n = cur.shape[0]
    lap = float(0.0)
    if i > 0 and i < n - 1:
        lap = cur[i - 1] - 2.0 * cur[i] + cur[i + 1]
    nxt[i] = 2.0 * cur[i] - prev[i] + c2[i] * lap


@wp.kernel
def inject(u: wp.array(dtype=float), strength: wp.array(dtype=float), node: int, t: int, width: float):
    tau = (float(t) - 8.0) / width
    u[node] += strength[0] * wp.exp(-tau * tau)


@wp.kernel
def listen(u: wp.array(dtype=float), nodes: wp.array(dtype=int), record: wp.array2d(dtype=float), t: int, loss: wp.array(dtype=float)):
    k = wp.tid()
    d = u[nodes[k]] - record[t, k]
    loss[k] += d * d


@wp.kernel
def sum_up(parts: wp.array(dtype=float), total: wp.array(dtype=float)):
    k = wp.tid()
    wp.atomic_add(total, 0, parts[k])


class String:
    def __init__(self, nodes, steps):
        self.nodes, self.steps = nodes, steps
        self.pickups = wp.array([nodes // 5, 3 * nodes // 4], dtype=int)

    def field(self):
        return wp.zeros(self.nodes, dtype=float, requires_grad=True)

    def play(self, c2, strength, on_step):
        prev, cur, nxt = self.field(), self.field(), self.field()
        for t in range(self.steps):
            wp.launch(leapfrog, dim=self.nodes, inputs=[prev, cur, c2], outputs=[nxt])
            wp.launch(inject, dim=1, inputs=[nxt, strength, self.nodes // 3, t, 4.0])
            on_step(t, nxt)
            prev, cur, nxt = cur, nxt, self.field()


class Inversion:
    def __init__(self, nodes, steps, lr):
        self.string = String(nodes, steps)
        x = np.linspace(0.0, 1.0, nodes)
        self.record = wp.zeros((steps, 2), dtype=float)
        true_c2 = wp.array((0.4 + 0.12 * np.sin(3.0 * x)).astype(np.float32), dtype=float)
        rows = []
        idx = self.string.pickups.numpy()
        self.string.play(true_c2, wp.array([0.3], dtype=float), lambda t, u: rows.append(u.numpy()[idx].copy()))
        self.record.assign(np.array(rows, dtype=np.float32))
        self.c2 = wp.array(np.full(nodes, 0.4), dtype=float, requires_grad=True)
        self.strength = wp.array([0.2], dtype=float, requires_grad=True)
        self.opt = Adam([self.c2, self.strength], lr=lr)

    def step(self):
        parts = wp.zeros(2, dtype=float, requires_grad=True)
        self.total = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            self.string.play(
                self.c2,
                self.strength,
                lambda t, u: wp.launch(listen, dim=2, inputs=[u, self.string.pickups, self.record, t, parts]),
            )
            wp.launch(sum_up, dim=2, inputs=[parts], outputs=[self.total])
        tape.backward(self.total)
        self.update()
        tape.zero()
        return float(self.total.numpy()[0])

    def update(self):
        self.opt.step([self.c2.grad, self.strength.grad])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--nodes", type=int, default=60)
    ap.add_argument("--steps", type=int, default=90)
    ap.add_argument("--iterations", type=int, default=8)
    cfg = ap.parse_args()
    inv = Inversion(cfg.nodes, cfg.steps, 0.008)
    for it in range(cfg.iterations):
        print(f"{it} misfit {inv.step():.5f} strength {inv.strength.numpy()[0]:.4f} mean c2 {inv.c2.numpy().mean():.4f}")


if __name__ == "__main__":
    main()

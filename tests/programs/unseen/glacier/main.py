"""Invert for the bed friction under a glacier from its surface speed."""
import numpy as np
import warp as wp

NODES = 7
SWEEPS = 12


@wp.kernel
def balance(v_old: wp.array(dtype=float), friction: wp.array(dtype=float), slope: wp.array(dtype=float), v_new: wp.array(dtype=float)):
    i = wp.tid()
    up = wp.max(i - 1, 0)
    down = wp.min(i + 1, NODES - 1)
    v_new[i] = (slope[i] + 0.8 * (v_old[up] + v_old[down])) / (friction[i] * friction[i] + 1.6)


@wp.kernel
def surface_misfit(v: wp.array(dtype=float), satellite: wp.array(dtype=float), J: wp.array(dtype=float)):
    i = wp.tid()
    d = wp.log(v[i] / satellite[i])
    wp.atomic_add(J, 0, d * d)


class Inversion:
    def __init__(self):
        s = np.linspace(0.0, 1.0, NODES)
        self.slope = wp.array(0.5 + 0.3 * np.sin(4 * s), dtype=float)
        self.friction = wp.array(np.full(NODES, 0.9), dtype=float, requires_grad=True)
        self.satellite = wp.array(0.7 + 0.4 * s * s, dtype=float)

    def speed(self):
        v = wp.full(NODES, 0.5, dtype=float, requires_grad=True)
        for _ in range(SWEEPS):
            nxt = wp.empty_like(v)
            wp.launch(balance, NODES, inputs=[v, self.friction, self.slope], outputs=[nxt])
            v = nxt
        return v

    def iterate(self, rate):
        J = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            v = self.speed()
            wp.launch(surface_misfit, NODES, inputs=[v, self.satellite], outputs=[J])
        direction = np.array(self.friction.grad.numpy())
        self.friction.grad.zero_()
        tape.backward(J)
        self.friction.assign(self.friction.numpy() - rate * direction)
        return J.numpy()[0]


if __name__ == "__main__":
    inversion = Inversion()
    for n in range(15):
        print(f"iterate {n:2d}: J = {inversion.iterate(0.05):.6f}")

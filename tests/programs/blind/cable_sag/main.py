"""Choose segment weights of a suspended cable so that its nodes meet a clearance profile."""

import logging
from dataclasses import dataclass

import numpy as np
import warp as wp
from warp.optim import Adam

log = logging.getLogger("cable")


@dataclass
class Cable:
    nodes: int = 25
    steps: int = 90
    dt: float = 0.025
    stiffness: float = 60.0


@wp.func
def slack_tension(stretch: float, k: float):
    safe = wp.where(stretch > 1.0e-4, stretch, 1.0)
    return wp.where(stretch > 1.0e-4, k * safe * (1.0 + wp.sqrt(safe)), 0.0)


@wp.kernel
def relax(
    y: wp.array(dtype=float), v: wp.array(dtype=float), logw: wp.array(dtype=float), k: float, dx: float, dt: float,
    y1: wp.array(dtype=float), v1: wp.array(dtype=float),
):
    i = wp.tid()
    n = y.shape[0]
    f = float(0.0)
    if i > 0 and i < n - 1:
        for s in range(2):
            j = i - 1 + 2 * s
            dy = y[j] - y[i]
            l = wp.sqrt(dx * dx + dy * dy)
            f += slack_tension(l / dx - 0.8, k) * dy / l
        f -= wp.exp(wp.clamp(logw[i], -4.0, 4.0)) + 1.2 * v[i]
    w = v[i] + dt * f
    v1[i] = w
    y1[i] = y[i] + dt * w


@wp.kernel
def clearance(y: wp.array(dtype=float), goal: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = wp.abs(y[i] - goal[i])
    wp.atomic_add(loss, 0, wp.where(d < 2.0, 0.5 * d * d, 2.0 * (d - 1.0)))


@wp.kernel
def absolute(v: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = wp.abs(v[i])


class Sizing:
    def __init__(self, cable):
        self.c = cable
        s = np.linspace(-1.0, 1.0, cable.nodes)
        self.goal = wp.array((-0.35 * (1.0 - s * s) * (1.0 + 0.3 * s)).astype(np.float32), dtype=float)
        self.logw = wp.array(np.full(cable.nodes, -0.5), dtype=float, requires_grad=True)
        self.opt = Adam([self.logw], lr=0.08)
        self.abs_v = wp.zeros(cable.nodes, dtype=float)

    def hang(self):
        c = self.c
        new = lambda: wp.zeros(c.nodes, dtype=float, requires_grad=True)
        y, v = new(), new()
        for t in range(c.steps):
            y1, v1 = new(), new()
            wp.launch(relax, dim=c.nodes, inputs=[y, v, self.logw, c.stiffness, 1.0 / c.nodes * 2.0, c.dt], outputs=[y1, v1])
            y, v = y1, v1
            if t % 30 == 29:
                wp.launch(absolute, dim=c.nodes, inputs=[v], outputs=[self.abs_v], record_tape=False)
                log.debug("step %d motion %.5f lowest %.4f", t, wp.utils.array_sum(self.abs_v), y.numpy().min())
        return y

    def iterate(self):
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            y = self.hang()
            wp.launch(clearance, dim=self.c.nodes, inputs=[y, self.goal], outputs=[self.loss])
        tape.backward(self.loss)
        self.apply()
        tape.zero()
        return float(self.loss.numpy()[0])

    def apply(self):
        self.opt.step([self.logw.grad])


def main():
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    job = Sizing(Cable())
    for it in range(9):
        log.info("%d loss %.6f", it, job.iterate())
    log.info("weights %s", np.round(np.exp(job.logw.numpy()), 3))


if __name__ == "__main__":
    main()

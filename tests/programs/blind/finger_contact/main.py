"""A pad is lowered on a row of compliant pins; the pin stiffnesses are identified from the
recorded motion of the pad."""

import numpy as np
import warp as wp

from contact import pressure

PINS = 6
STEPS = 50


@wp.kernel
def pad_step(
    state: wp.array2d(dtype=float),
    t: int,
    tips: wp.array(dtype=float),
    stiffness: wp.array(dtype=float),
    push: float,
    damping: float,
    dt: float,
):
    y = state[t, 0]
    v = state[t, 1]
    f = -push - damping * v
    for j in range(6):
        f += pressure(y - tips[j], stiffness[j])
    v1 = v + dt * f
    state[t + 1, 0] = y + dt * v1
    state[t + 1, 1] = v1


@wp.kernel
def trace_error(state: wp.array2d(dtype=float), record: wp.array(dtype=float), scale: float, loss: wp.array(dtype=float)):
    t = wp.tid()
    d = state[t + 1, 0] - record[t]
    wp.atomic_add(loss, 0, scale * d * d)


@wp.kernel
def rmsprop(p: wp.array(dtype=float), g: wp.array(dtype=float), acc: wp.array(dtype=float), lr: float):
    i = wp.tid()
    acc[i] = 0.8 * acc[i] + 0.2 * g[i] * g[i]
    p[i] = p[i] - lr * g[i] / (wp.sqrt(acc[i]) + 1.0e-6)


class Identification:
    def __init__(self, stiffness, record=None):
        self.tips = wp.array(np.linspace(0.0, 0.05, PINS), dtype=float)
        self.k = wp.array(stiffness, dtype=float, requires_grad=True)
        self.acc = wp.zeros(PINS, dtype=float)
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
        self.record = record

    def rollout(self):
        init = np.zeros((STEPS + 1, 2), dtype=np.float32)
        init[0] = (0.12, -0.3)
        state = wp.array(init, dtype=float, requires_grad=True)
        for t in range(STEPS):
            wp.launch(pad_step, dim=1, inputs=[state, t, self.tips, self.k, 1.0, 1.5, 0.02])
        return state

    def epoch(self):
        self.loss.zero_()
        tape = wp.Tape()
        with tape:
            state = self.rollout()
            wp.launch(trace_error, dim=STEPS, inputs=[state, self.record, 1000.0 / STEPS], outputs=[self.loss])
        tape.backward(self.loss)
        self.improve()
        tape.zero()
        return float(self.loss.numpy()[0])

    def improve(self):
        wp.launch(rmsprop, dim=PINS, inputs=[self.k, self.k.grad, self.acc, 0.4])


def main():
    truth = Identification([9.0, 11.0, 10.0, 7.0, 12.0, 8.0])
    record = truth.rollout().numpy()[1:, 0].copy()
    ident = Identification([6.0] * PINS, wp.array(record, dtype=float))
    for it in range(8):
        value = ident.epoch()
        print(f"epoch {it} error {value:.6f} k {np.round(ident.k.numpy(), 3)}")


if __name__ == "__main__":
    main()

"""Normalize a seismogram by its own level, and fit the source's strengths to what was measured.

The level is computed where the first argument says: in a kernel (the default), or on the host, while the tape records, from
what the kernels before it have made: `array`, `from_numpy`, `full`, `item` (one element set), `scalar` (a number that is handed
to a launch), `double` (float64 throughout), `struct` (a field of a wp.struct), `parameter` (from the strengths themselves),
`before` (from the strengths, read before the tape), `plain` (without a gradient buffer). `logged` computes in a kernel and reads on the host what it prints.
"""

import sys

import numpy as np
import warp as wp

HOW = sys.argv[1] if len(sys.argv) > 1 else "kernel"
REAL = wp.float64 if HOW == "double" else wp.float32
SHOTS, TRACE = 6, 40


@wp.struct
class Level:
    value: wp.array(dtype=wp.float32)


@wp.kernel
def shoot(strength: wp.array(dtype=REAL), trace: wp.array(dtype=REAL)):
    i = wp.tid()
    total = REAL(0.0)
    for s in range(SHOTS):
        total += strength[s] * wp.exp(-REAL(0.02) * REAL((i - 6 * s) * (i - 6 * s)))
    trace[i] = total * total


@wp.kernel
def mean(values: wp.array(dtype=REAL), level: wp.array(dtype=REAL)):
    i = wp.tid()
    wp.atomic_add(level, 0, values[i] / REAL(values.shape[0]))


@wp.kernel
def divide(trace: wp.array(dtype=REAL), level: wp.array(dtype=REAL), out: wp.array(dtype=REAL)):
    i = wp.tid()
    out[i] = trace[i] / (REAL(0.5) + level[0])


@wp.kernel
def divide_by(trace: wp.array(dtype=REAL), level: REAL, out: wp.array(dtype=REAL)):
    i = wp.tid()
    out[i] = trace[i] / (REAL(0.5) + level)


@wp.kernel
def divide_field(trace: wp.array(dtype=wp.float32), level: Level, out: wp.array(dtype=wp.float32)):
    i = wp.tid()
    out[i] = trace[i] / (0.5 + level.value[0])


@wp.kernel
def misfit(out: wp.array(dtype=REAL), seen: wp.array(dtype=REAL), loss: wp.array(dtype=REAL)):
    i = wp.tid()
    d = out[i] - seen[i]
    wp.atomic_add(loss, 0, d * d)


class Recorder:
    def __init__(self):
        x = np.arange(TRACE)
        self.seen = wp.array(1.2 + 0.6 * np.sin(0.3 * x), dtype=REAL)
        self.strength = wp.array(0.8 + 0.3 * np.cos(np.arange(SHOTS)), dtype=REAL, requires_grad=True)

    def gauge(self, trace, known):
        if HOW in ("kernel", "logged"):
            level = wp.zeros(1, dtype=REAL, requires_grad=True)
            wp.launch(mean, TRACE, inputs=[trace], outputs=[level])
            if HOW == "logged":
                print("mean", trace.numpy().mean(), "level", level.list()[0])
                shown = wp.array([trace.numpy().max()], dtype=REAL)
                print("peak", shown)
            return level
        if HOW == "from_numpy":
            values = trace.numpy().mean(keepdims=True)
            return wp.from_numpy(values, dtype=REAL, requires_grad=True)
        if HOW == "full":
            return wp.full(1, float(trace.numpy().mean()), dtype=REAL, requires_grad=True)
        if HOW == "item":
            level = wp.zeros(1, dtype=REAL, requires_grad=True)
            level[0:1].fill_(sum(trace.list()) / TRACE)
            return level
        if HOW == "before":
            return wp.array([known], dtype=REAL, requires_grad=True)
        if HOW == "parameter":
            return wp.array([(self.strength.numpy() ** 2).sum() / TRACE], dtype=REAL, requires_grad=True)
        return wp.array([trace.numpy().mean()], dtype=REAL, requires_grad=HOW != "plain")

    def forward(self, known):
        trace, out = (wp.zeros(TRACE, dtype=REAL, requires_grad=True) for _ in range(2))
        loss = wp.zeros(1, dtype=REAL, requires_grad=True)
        wp.launch(shoot, TRACE, inputs=[self.strength], outputs=[trace])
        if HOW == "scalar":
            wp.launch(divide_by, TRACE, inputs=[trace, float(trace.numpy().mean())], outputs=[out])
        elif HOW == "struct":
            held = Level()
            held.value = wp.array(trace.numpy().mean(keepdims=True), dtype=REAL, requires_grad=True)
            wp.launch(divide_field, TRACE, inputs=[trace, held], outputs=[out])
        else:
            level = self.gauge(trace, known)
            wp.launch(divide, TRACE, inputs=[trace, level], outputs=[out])
        wp.launch(misfit, TRACE, inputs=[out, self.seen], outputs=[loss])
        return loss


recorder = Recorder()
for step in range(3):
    known = float((recorder.strength.numpy() ** 2).sum() / TRACE)
    with wp.Tape() as tape:
        loss = recorder.forward(known)
    tape.backward(loss)
    slope = recorder.strength.grad.numpy().copy()
    print(step, float(loss.numpy()[0]), slope)
    recorder.strength.assign(recorder.strength.numpy() - 0.005 * slope)
    tape.zero()

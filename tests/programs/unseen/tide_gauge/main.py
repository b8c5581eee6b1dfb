"""Harmonic analysis of a tide gauge: amplitudes and phases of four constituents."""
import numpy as np
import warp as wp

HOURS = 50
SPEEDS = np.array([0.5059, 0.5236, 0.4964, 0.2625], dtype=np.float32)


@wp.struct
class Constituents:
    amplitude: wp.array(dtype=float)
    phase: wp.array(dtype=float)
    speed: wp.array(dtype=float)


@wp.kernel
def level(c: Constituents, gauge: wp.array(dtype=float), sq: wp.array(dtype=float)):
    h = wp.tid()
    z = float(0.0)
    for k in range(4):
        z += c.amplitude[k] * wp.cos(c.speed[k] * float(h) + c.phase[k])
    d = z - gauge[h]
    sq[h] = d * d


def synthetic():
    h = np.arange(HOURS)[:, None]
    return (np.array([1.2, 0.4, 0.2, 0.3]) * np.cos(SPEEDS * h + np.array([0.4, 1.0, -0.5, 0.2]))).sum(axis=1)


tides = Constituents()
tides.amplitude = wp.full(4, 0.5, dtype=float, requires_grad=True)
tides.phase = wp.zeros(4, dtype=float, requires_grad=True)
tides.speed = wp.array(SPEEDS, dtype=float)
gauge = wp.array(synthetic(), dtype=float)

for n in range(20):
    sq = wp.zeros(HOURS, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(level, HOURS, inputs=[tides, gauge], outputs=[sq])
    tape.backward(grads={sq: wp.full(HOURS, 1.0 / HOURS, dtype=float)})
    for part in (tides.amplitude, tides.phase):
        part.assign(part.numpy() - 0.4 * part.grad.numpy())
        part.grad.zero_()
    if n % 4 == 0:
        print(f"pass {n}: variance {sq.numpy().mean():.5f}")

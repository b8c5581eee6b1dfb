"""Harmonic analysis of tides: amplitudes and phases of six constituents from four gauges, a gauge at a time."""
import numpy as np
import warp as wp

CONSTITUENTS, GAUGES, SAMPLES = 6, 4, 48
rng = np.random.default_rng(31)


@wp.kernel
def predict(
    amplitude: wp.array(dtype=float), phase: wp.array(dtype=float), speed: wp.array(dtype=float),
    reach: wp.array2d(dtype=float), gauge: int, level: wp.array(dtype=float),
):
    t = wp.tid()
    total = float(0.0)
    for c in range(CONSTITUENTS):
        total += reach[gauge, c] * amplitude[c] * wp.cos(speed[c] * float(t) - phase[c])
    level[t] = total


@wp.kernel
def residual(level: wp.array(dtype=float), record: wp.array2d(dtype=float), gauge: int, loss: wp.array(dtype=float)):
    t = wp.tid()
    d = level[t] - record[gauge, t]
    wp.atomic_add(loss, 0, d * d / float(SAMPLES))


@wp.kernel
def scale(values: wp.array(dtype=float), factor: float):
    i = wp.tid()
    values[i] = values[i] * factor


@wp.kernel
def descend(x: wp.array(dtype=float), g: wp.array(dtype=float), rate: float):
    i = wp.tid()
    x[i] = x[i] - rate * g[i]


speed = wp.array([0.506, 0.524, 0.262, 0.243, 0.0806, 0.497], dtype=float)
reach = wp.array(rng.uniform(0.4, 1.6, (GAUGES, CONSTITUENTS)), dtype=float)
record = wp.array(rng.normal(0.0, 0.7, (GAUGES, SAMPLES)), dtype=float)
amplitude = wp.array([0.8, 0.3, 0.2, 0.15, 0.1, 0.2], dtype=float, requires_grad=True)
phase = wp.array([0.1, 1.0, 2.0, 0.5, 0.7, 2.5], dtype=float, requires_grad=True)


def gauge_loss(gauge):
    level = wp.zeros(SAMPLES, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    wp.launch(predict, SAMPLES, inputs=[amplitude, phase, speed, reach, gauge], outputs=[level])
    wp.launch(residual, SAMPLES, inputs=[level, record, gauge], outputs=[loss])
    return loss


for epoch in range(8):
    amplitude.grad.zero_()
    phase.grad.zero_()
    mean = 0.0
    for gauge in range(GAUGES):
        wp.launch(scale, CONSTITUENTS, inputs=[amplitude.grad, 1.0 / GAUGES])
        wp.launch(scale, CONSTITUENTS, inputs=[phase.grad, 1.0 / GAUGES])
        tape = wp.Tape()
        with tape:
            loss = gauge_loss(gauge)
        tape.backward(loss)
        mean += loss.numpy()[0] / GAUGES
    wp.launch(descend, CONSTITUENTS, inputs=[amplitude, amplitude.grad, 0.3])
    wp.launch(descend, CONSTITUENTS, inputs=[phase, phase.grad, 0.3])
    print(f"epoch {epoch}: mean misfit {mean:.5f}")

"""Calibrate four rain gauges (a scale and a wetting loss each) against the radar."""
import numpy as np
import warp as wp

GAUGES = 4
STORMS = 6
ITERATIONS = 5
LEARNING_RATE = 0.02


@wp.kernel
def compare(
    scale: wp.array(dtype=float),
    wetting: wp.array(dtype=float),
    caught: wp.array2d(dtype=float),
    radar: wp.array2d(dtype=float),
    loss: wp.array(dtype=float),
):
    s, g = wp.tid()
    rain = scale[g] * wp.sqrt(caught[s, g]) + wetting[g]
    d = rain - radar[s, g]
    wp.atomic_add(loss, 0, d * d / float(STORMS))


season = np.random.default_rng(4)
caught = season.uniform(1.0, 9.0, (STORMS, GAUGES))
radar = wp.array(np.array([1.3, 0.9, 1.1, 1.5]) * np.sqrt(caught) + 0.4, dtype=float)
caught = wp.array(caught, dtype=float)
scale = wp.full(GAUGES, 1.0, dtype=float, requires_grad=True)
wetting = wp.zeros(GAUGES, dtype=float, requires_grad=True)

for it in range(ITERATIONS):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    tape.zero()  # start from zero gradients
    with tape:
        wp.launch(compare, (STORMS, GAUGES), inputs=[scale, wetting, caught, radar], outputs=[loss])
    tape.backward(loss)

    d_scale, d_wetting = scale.grad.numpy().copy(), wetting.grad.numpy().copy()
    print(f"iteration {it}  loss {loss.numpy()[0]:.5f}  scale {np.round(scale.numpy(), 3)}  gradient {d_scale}")
    scale.assign(scale.numpy() - LEARNING_RATE * d_scale)
    wetting.assign(wetting.numpy() - LEARNING_RATE * d_wetting)

"""Calibrate four rain gauges (a scale and a wetting loss each) against the radar, storm by storm."""
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
    storm: int,
    caught: wp.array2d(dtype=float),
    radar: wp.array2d(dtype=float),
    loss: wp.array(dtype=float),
):
    g = wp.tid()
    rain = scale[g] * wp.sqrt(caught[storm, g]) + wetting[g]
    d = rain - radar[storm, g]
    wp.atomic_add(loss, 0, d * d / float(STORMS))


season = np.random.default_rng(4)
caught = season.uniform(1.0, 9.0, (STORMS, GAUGES))
radar = wp.array(np.array([1.3, 0.9, 1.1, 1.5]) * np.sqrt(caught) + 0.4, dtype=float)
caught = wp.array(caught, dtype=float)
scale = wp.full(GAUGES, 1.0, dtype=float, requires_grad=True)
wetting = wp.zeros(GAUGES, dtype=float, requires_grad=True)

for it in range(ITERATIONS):
    scale.grad.zero_()
    wetting.grad.zero_()
    total = 0.0
    for storm in range(STORMS):  # the gradients of the storms add up
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(compare, GAUGES, inputs=[scale, wetting, storm, caught, radar], outputs=[loss])
        tape.backward(loss)
        total += loss.numpy()[0]

    d_scale, d_wetting = scale.grad.numpy().copy(), wetting.grad.numpy().copy()
    print(f"iteration {it}  loss {total:.5f}  scale {np.round(scale.numpy(), 3)}  gradient {d_scale}")
    scale.assign(scale.numpy() - LEARNING_RATE * d_scale)
    wetting.assign(wetting.numpy() - LEARNING_RATE * d_wetting)

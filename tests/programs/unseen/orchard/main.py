"""Irrigation of an orchard: soil water by Warp, the pump schedule smoothed with NumPy in between."""
import numpy as np
import warp as wp

WEEKS = 9


@wp.kernel
def valve(handle: wp.array(dtype=float), flow: wp.array(dtype=float)):
    w = wp.tid()
    flow[w] = 1.0 / (1.0 + wp.exp(-handle[w]))


@wp.kernel
def soil(flow: wp.array(dtype=float), water: wp.array(dtype=float), w: int):
    water[w + 1] = water[w] + flow[w] - 0.4 * water[w] * water[w]


@wp.kernel
def thirst(water: wp.array(dtype=float), handle: wp.array(dtype=float), loss: wp.array(dtype=float)):
    w = wp.tid()
    d = water[w + 1] - 0.9
    wp.atomic_add(loss, 0, d * d + 0.01 * handle[w] * handle[w])


def smooth(x):
    return np.convolve(np.pad(x, 1, mode="edge"), [0.25, 0.5, 0.25], mode="valid")


handle = wp.array(np.linspace(-1.0, 1.0, WEEKS), dtype=float, requires_grad=True)
for season in range(10):
    flow = wp.zeros(WEEKS, dtype=float, requires_grad=True)
    water = wp.zeros(WEEKS + 1, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(valve, WEEKS, inputs=[handle], outputs=[flow])
        pumped = wp.array(smooth(flow.numpy()), dtype=float, requires_grad=True)
        for w in range(WEEKS):
            wp.launch(soil, 1, inputs=[pumped, water, w])
        wp.launch(thirst, WEEKS, inputs=[water, handle], outputs=[loss])
    tape.backward(loss)
    handle.assign(handle.numpy() - 1.0 * handle.grad.numpy())
    handle.grad.zero_()
    print("season", season, "loss", loss.numpy()[0])

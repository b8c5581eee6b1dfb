"""Dissolve salt caverns: choose injection rates for an even cavern volume and little waste water."""
import numpy as np
import warp as wp

CAVERNS = 4


@wp.kernel
def dissolve(rate: wp.array(dtype=float), radius: wp.array(dtype=float), brine: wp.array(dtype=float)):
    c = wp.tid()
    r = radius[c]
    for _ in range(8):
        r = r + 0.1 * rate[c] / (1.0 + r)
    brine[c] = r * r


@wp.kernel
def waste(rate: wp.array(dtype=float), w: wp.array(dtype=float)):
    c = wp.tid()
    wp.atomic_add(w, 0, 0.2 * rate[c] * rate[c])


@wp.kernel
def objective(total: wp.array(dtype=float), w: wp.array(dtype=float), demand: float, obj: wp.array(dtype=float)):
    d = total[0] - demand
    obj[0] = d * d + w[0]


rate = wp.array([0.3, 0.5, 0.4, 0.6], dtype=float, requires_grad=True)
radius = wp.array([0.4, 0.5, 0.6, 0.3], dtype=float)
brine = wp.zeros(CAVERNS, dtype=float, requires_grad=True)

for month in range(8):
    total = wp.zeros(1, dtype=float, requires_grad=True)
    w = wp.zeros(1, dtype=float, requires_grad=True)
    obj = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(dissolve, CAVERNS, inputs=[rate, radius], outputs=[brine])
        wp.utils.array_sum(brine, out=total)
        wp.launch(waste, CAVERNS, inputs=[rate], outputs=[w])
        wp.launch(objective, 1, inputs=[total, w, 3.0], outputs=[obj])
    tape.backward(obj)
    step = rate.grad.numpy().copy()
    tape.zero()
    rate.assign(np.maximum(rate.numpy() - 0.1 * step, 0.0))
    print(f"month {month}: objective {obj.numpy()[0]:.5f} rates {rate.numpy()}")

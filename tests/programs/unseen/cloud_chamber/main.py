"""Calibrate the drift field of a cloud chamber: only droplets that reach the plate are kept for the fit."""
import numpy as np
import warp as wp

DROPS = 24


@wp.kernel
def drift(start: wp.array(dtype=wp.vec2), field: wp.array(dtype=float), count: wp.array(dtype=int), hit: wp.array(dtype=float)):
    d = wp.tid()
    y = start[d][1]
    x = start[d][0] + field[0] * y + field[1] * y * y
    if y < 1.0:
        slot = wp.atomic_add(count, 0, 1)
        hit[slot] = x


@wp.kernel
def stripe(hit: wp.array(dtype=float), count: wp.array(dtype=int), loss: wp.array(dtype=float)):
    s = wp.tid()
    if s < count[0]:
        d = hit[s] - 0.5
        wp.atomic_add(loss, 0, d * d)


rng = np.random.default_rng(9)
start = wp.array(rng.uniform([0.0, 0.2], [0.3, 1.5], (DROPS, 2)), dtype=wp.vec2)
field = wp.array([0.1, 0.05], dtype=float, requires_grad=True)

for run in range(10):
    hit = wp.zeros(DROPS, dtype=float, requires_grad=True)
    count = wp.zeros(1, dtype=int)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(drift, DROPS, inputs=[start, field, count], outputs=[hit])
        wp.launch(stripe, DROPS, inputs=[hit, count], outputs=[loss])
    tape.backward(loss)
    correction = field.grad.numpy().copy()
    tape.zero()
    print(f"run {run}: {count.numpy()[0]} hits, width {loss.numpy()[0]:.5f}, field {field.numpy()}")
    field.assign(field.numpy() - 0.02 * correction)

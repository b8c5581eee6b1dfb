"""The parameter lives in NumPy, with its momentum: its Warp array is made anew in each iteration.

The arguments say what is done besides: `late` follows the gradient of the array of the iteration before, `kept` reads it
through the buffer alone (the array is gone), `first` makes no update before there is one, `log` prints the own gradient,
`look` that of the array before, `carry` leaves the momentum out, `swap` has two arrays that take turns and are written into.
"""
import sys

import numpy as np
import warp as wp


@wp.kernel
def drift(v: wp.array(dtype=float), x: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = x[i] + 0.2 * v[i] - 0.05 * x[i] * x[i] * x[i]


@wp.kernel
def misfit(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (x[i] - 1.0) * (x[i] - 1.0))


COUNT, STEPS = 9, 5
how = sys.argv[1:]
values = np.linspace(0.1, 0.9, COUNT).astype(np.float32)
momentum = np.zeros(COUNT, dtype=np.float32)
decay = 0.0 if "carry" in how else 0.5
pair = [wp.array(values, dtype=float, requires_grad=True) for _ in range(2)]
before = None

for it in range(5):
    if "swap" in how:
        speed = pair[it % 2]
        speed.assign(values)
        speed.grad.zero_()
    else:
        speed = wp.array(values, dtype=float, requires_grad=True)
    states = [wp.zeros(COUNT, dtype=float, requires_grad=True) for _ in range(STEPS + 1)]
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        for k in range(STEPS):
            wp.launch(drift, COUNT, inputs=[speed, states[k]], outputs=[states[k + 1]])
        wp.launch(misfit, COUNT, inputs=[states[-1]], outputs=[loss])
    tape.backward(loss)
    if "log" in how:
        print("slope", np.abs(speed.grad.numpy()).sum())
    if "look" in how and before is not None:
        print("slope before", np.abs(before.numpy()).sum())
    if "late" not in how:
        used = speed.grad
    elif before is None and "first" not in how:
        used = speed.grad
    else:
        used = before
    if used is not None:
        momentum = decay * momentum + used.numpy()
        values = values - 0.1 * momentum
    before = speed.grad
    if "kept" not in how:
        owner = speed
    print(it, loss.numpy()[0])

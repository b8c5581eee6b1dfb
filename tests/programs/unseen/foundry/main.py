"""Cooling of a casting: conductivity of the sand mould from thermocouples. The melt stays at 1."""
import numpy as np
import warp as wp

CELLS = 16
STEPS = 30


@wp.kernel
def conduct(temp: wp.array2d(dtype=float), sand: wp.array(dtype=float), t: int):
    i = wp.tid()
    lo = wp.max(i - 1, 0)
    hi = wp.min(i + 1, CELLS - 1)
    k = sand[0] + sand[1] * temp[t, i]
    lap = temp[t, lo] - 2.0 * temp[t, i] + temp[t, hi]
    temp[t + 1, i] = temp[t, i] + k * lap


@wp.kernel
def thermocouples(temp: wp.array2d(dtype=float), read: wp.array2d(dtype=float), err: wp.array(dtype=float)):
    t, i = wp.tid()
    if i % 4 == 1 and t % 5 == 0:
        d = temp[t, i] - read[t, i]
        wp.atomic_add(err, 0, d * d)


def cast(sand):
    temp = wp.zeros((STEPS + 1, CELLS), dtype=float, requires_grad=True)
    view = temp.numpy()
    view[:, 0] = 1.0
    for t in range(STEPS):
        wp.launch(conduct, CELLS, inputs=[temp, sand, t])
        view[t + 1, 0] = 1.0
        view[t + 1, -1] = view[t + 1, -2]
    return temp


read = cast(wp.array([0.15, 0.2], dtype=float))
read.requires_grad = False
sand = wp.array([0.25, 0.05], dtype=float, requires_grad=True)
for pour in range(10):
    err = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        temp = cast(sand)
        wp.launch(thermocouples, (STEPS + 1, CELLS), inputs=[temp, read, err])
    tape.backward(err)
    print(f"pour {pour}: err {err.numpy()[0]:.6f} sand {sand.numpy()}")
    sand.assign(sand.numpy() - 0.02 * sand.grad.numpy())
    tape.zero()

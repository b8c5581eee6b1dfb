"""Find how much light each pane of a stack of tinted glass lets through, from what a lamp leaves behind it."""
import numpy as np
import warp as wp

COLOURS = 3
PANES = 4
ITERATIONS = 4
LEARNING_RATE = 0.15


@wp.kernel
def through(
    pane: int,
    tint: wp.array2d(dtype=float),
    light: wp.array(dtype=float),
    passed: wp.array(dtype=float),
):
    c = wp.tid()
    passed[c] = light[c] * tint[pane, c]


@wp.kernel
def misfit(light: wp.array(dtype=float), measured: wp.array(dtype=float), loss: wp.array(dtype=float)):
    c = wp.tid()
    d = light[c] - measured[c]
    wp.atomic_add(loss, 0, d * d)


def behind(tint):
    light = wp.array([1.0, 1.4, 0.8], dtype=float, requires_grad=True)
    for pane in range(PANES):
        passed = wp.zeros(COLOURS, dtype=float, requires_grad=True)
        wp.launch(through, COLOURS, inputs=[pane, tint, light], outputs=[passed])
        light = passed
    return light


true_tint = 0.9 - 0.05 * np.arange(PANES * COLOURS).reshape(PANES, COLOURS) % 0.3
measured = wp.array(behind(wp.array(true_tint, dtype=float)).numpy(), dtype=float)
tint = wp.full((PANES, COLOURS), 0.7, dtype=float, requires_grad=True)

for it in range(ITERATIONS):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        light = behind(tint)
        wp.launch(misfit, COLOURS, inputs=[light, measured], outputs=[loss])
    tape.backward(loss)

    slope = tint.grad.numpy().copy()
    print(f"iteration {it}  loss {loss.numpy()[0]:.6f}  gradient of pane 0 {slope[0]}  of pane 3 {slope[3]}")
    tape.zero()
    tint.assign(tint.numpy() - LEARNING_RATE * slope)

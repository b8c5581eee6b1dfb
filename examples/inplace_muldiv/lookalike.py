"""Find the brightness of a lamp in three colours, seen through panes of glass of known tint."""
import numpy as np
import warp as wp

COLOURS = 3
PANES = 4
ITERATIONS = 4
LEARNING_RATE = 0.15


@wp.kernel
def shine(current: wp.array(dtype=float), light: wp.array(dtype=float)):
    c = wp.tid()
    warmth = current[c]
    warmth *= current[c]
    light[c] = warmth


@wp.kernel
def through(pane: int, tint: wp.array2d(dtype=float), light: wp.array(dtype=float)):
    c = wp.tid()
    light[c] *= tint[pane, c]


@wp.kernel
def misfit(light: wp.array(dtype=float), measured: wp.array(dtype=float), loss: wp.array(dtype=float)):
    c = wp.tid()
    d = light[c] - measured[c]
    wp.atomic_add(loss, 0, d * d)


def behind(current):
    light = wp.zeros(COLOURS, dtype=float, requires_grad=True)
    wp.launch(shine, COLOURS, inputs=[current], outputs=[light])
    for pane in range(PANES):
        wp.launch(through, COLOURS, inputs=[pane, tint], outputs=[light])
    return light


tint = wp.array(0.9 - 0.02 * np.arange(PANES * COLOURS).reshape(PANES, COLOURS), dtype=float)
measured = wp.array(behind(wp.array([1.0, 1.4, 0.8], dtype=float)).numpy(), dtype=float)
current = wp.full(COLOURS, 0.9, dtype=float, requires_grad=True)

for it in range(ITERATIONS):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        light = behind(current)
        wp.launch(misfit, COLOURS, inputs=[light, measured], outputs=[loss])
    tape.backward(loss)

    slope = current.grad.numpy().copy()
    print(f"iteration {it}  loss {loss.numpy()[0]:.6f}  current {np.round(current.numpy(), 4)}  gradient {slope}")
    tape.zero()
    current.assign(current.numpy() - LEARNING_RATE * slope)

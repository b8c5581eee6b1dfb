"""Past accumulation from an ice core. The run is long, so only every SEGMENT-th state is kept; the
segments are computed again, last one first, when the gradient is needed."""
import numpy as np
import warp as wp

DEPTH = 12
STEPS = 40
SEGMENT = 8


@wp.kernel
def sink(age: wp.array(dtype=float), snow: wp.array(dtype=float), t: int, deeper: wp.array(dtype=float)):
    i = wp.tid()
    fall = 0.5 * snow[t / SEGMENT] / (1.0 + 0.3 * age[i])
    if i == 0:
        deeper[i] = age[i] * (1.0 - fall) + 0.05
    else:
        deeper[i] = age[i] + 0.05 - fall * (age[i] - age[i - 1])


@wp.kernel
def dated(age: wp.array(dtype=float), layer: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = age[i] - layer[i]
    wp.atomic_add(loss, 0, d * d)


def segment(age, snow, first):
    for t in range(first, first + SEGMENT):
        nxt = wp.zeros(DEPTH, dtype=float, requires_grad=True)
        wp.launch(sink, DEPTH, inputs=[age, snow, t], outputs=[nxt])
        age = nxt
    return age


layer = wp.array(0.1 + 0.12 * np.arange(DEPTH), dtype=float)
snow = wp.full(STEPS // SEGMENT, 0.6, dtype=float, requires_grad=True)

for trial in range(8):
    kept = [wp.zeros(DEPTH, dtype=float)]
    for first in range(0, STEPS, SEGMENT):
        kept.append(segment(kept[-1], snow, first))

    misfit = wp.zeros(1, dtype=float, requires_grad=True)
    final = wp.clone(kept[-1], requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(dated, DEPTH, inputs=[final, layer], outputs=[misfit])
    tape.backward(misfit)
    adjoint = wp.clone(final.grad)

    for n in reversed(range(STEPS // SEGMENT)):
        start = wp.clone(kept[n], requires_grad=True)
        tape = wp.Tape()
        with tape:
            end = segment(start, snow, n * SEGMENT)
        tape.backward(grads={end: adjoint})
        adjoint = wp.clone(start.grad)

    print(f"trial {trial}: misfit {misfit.numpy()[0]:.6f} snow {np.round(snow.numpy(), 3)}")
    snow.assign(snow.numpy() - 0.05 * snow.grad.numpy())
    snow.grad.zero_()

"""Some of the measurements, by `wp.indexedarray`: made contiguous before the tape, which is right; `taped`: as an argument inside it."""
import sys
import numpy as np
import warp as wp


@wp.kernel
def misfit_of(a: wp.array(dtype=float), y: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = wp.sin(a[i]) - y[i]
    wp.atomic_add(loss, 0, d * d)


@wp.kernel
def misfit_of_chosen(a: wp.array(dtype=float), y: wp.indexedarray(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = wp.sin(a[i]) - y[i]
    wp.atomic_add(loss, 0, d * d)


measured = wp.array(np.linspace(0.1, 0.9, 20), dtype=float)
chosen = wp.indexedarray1d(measured, [wp.array([1, 4, 9, 16], dtype=int)])
a = wp.array(np.full(4, 0.4), dtype=float, requires_grad=True)

for it in range(3):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    y = chosen.contiguous()
    with wp.Tape() as tape:
        if "taped" in sys.argv:
            wp.launch(misfit_of_chosen, 4, inputs=[a, chosen], outputs=[loss])
        else:
            wp.launch(misfit_of, 4, inputs=[a, y], outputs=[loss])
    tape.backward(loss)
    a.assign(a.numpy() - 0.2 * a.grad.numpy())
    tape.zero()
    print(it, loss.numpy()[0])

"""One objective, the sum over two experiments with a tape each; the parameter's gradient adds up over both.

`wiped`: everything of the first experiment is set to zero before the second begins, the parameter's gradient with it.
"""
import sys
import numpy as np
import warp as wp
N = 12


@wp.kernel
def bend(x: wp.array(dtype=float), stiff: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = x[i] / (1.0 + stiff[i] * stiff[i])


@wp.kernel
def misfit(u: wp.array(dtype=float), seen: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = u[i] - seen[i]
    wp.atomic_add(loss, 0, d * d)


stiff = wp.array(np.linspace(0.5, 1.0, N), dtype=float, requires_grad=True)
loads = [wp.array(np.linspace(a, 1.5, N), dtype=float, requires_grad=True) for a in (0.8, 2.0)]
seen = [wp.array(load.numpy() * 0.7, dtype=float) for load in loads]

for it in range(3):
    total = 0.0
    for load, measured in zip(loads, seen):
        bent = wp.zeros(N, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            wp.launch(bend, N, inputs=[load, stiff, bent])
            wp.launch(misfit, N, inputs=[bent, measured, loss])
        if "wiped" in sys.argv:
            stiff.grad.zero_()
        tape.backward(loss)
        total += loss.numpy()[0]
    stiff.assign(stiff.numpy() - 0.2 * stiff.grad.numpy())
    stiff.grad.zero_()
    print(it, total)

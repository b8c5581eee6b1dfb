"""A swinging chain's stiffnesses are fitted; every third iteration also reports how hard the prior alone pulls on each.

`doubled` (broken): its backward pass adds to gradients that the update reads afterwards. `restored` (right): they are saved
before and put back. `last` (right): the report comes after the update.
"""

import sys

import numpy as np
import warp as wp

LINKS, STEPS, REPORT_EVERY = 6, 12, 3


@wp.kernel
def swing(y: wp.array(dtype=wp.float32), k: wp.array(dtype=wp.float32), out: wp.array(dtype=wp.float32)):
    i = wp.tid()
    up = float(0.0)
    if i > 0:
        up = y[i - 1]
    down = y[i] - 1.0
    if i + 1 < y.shape[0]:
        down = y[i + 1]
    out[i] = y[i] + 0.1 * (k[i] * (up - y[i]) + 0.5 * (down - y[i]) - 0.4)


@wp.kernel
def misfit(y: wp.array(dtype=wp.float32), seen: wp.array(dtype=wp.float32), loss: wp.array(dtype=wp.float32)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (y[i] - seen[i]) * (y[i] - seen[i]))


@wp.kernel
def prior(k: wp.array(dtype=wp.float32), out: wp.array(dtype=wp.float32)):
    i = wp.tid()
    wp.atomic_add(out, 0, 0.05 * (k[i] - 1.0) * (k[i] - 1.0))


@wp.kernel
def add(a: wp.array(dtype=wp.float32), b: wp.array(dtype=wp.float32), out: wp.array(dtype=wp.float32)):
    out[0] = a[0] + b[0]


def scalar():
    return wp.zeros(1, dtype=wp.float32, requires_grad=True)


def main(variant):
    k = wp.array(np.linspace(0.6, 1.5, LINKS, dtype=np.float32), requires_grad=True)
    seen = wp.array(np.linspace(-0.2, -1.6, LINKS, dtype=np.float32))
    for it in range(7):
        fit, pull, total = scalar(), scalar(), scalar()
        tape = wp.Tape()
        with tape:
            y = wp.zeros(LINKS, dtype=wp.float32, requires_grad=True)
            for _ in range(STEPS):
                following = wp.zeros_like(y)
                wp.launch(swing, dim=LINKS, inputs=[y, k], outputs=[following])
                y = following
            wp.launch(misfit, dim=LINKS, inputs=[y, seen], outputs=[fit])
            wp.launch(prior, dim=LINKS, inputs=[k], outputs=[pull])
            wp.launch(add, dim=1, inputs=[fit, pull], outputs=[total])
        tape.backward(total)
        if it % REPORT_EVERY == REPORT_EVERY - 1 and variant != "last":
            kept = k.grad.numpy().copy()
            if variant == "restored":
                tape.zero()
            tape.backward(pull)
            print("pull", np.round(k.grad.numpy() - (kept if variant == "doubled" else 0.0), 4))
            if variant == "restored":
                k.grad.assign(kept)
        k.assign(k.numpy() - 0.05 * k.grad.numpy())
        if it % REPORT_EVERY == REPORT_EVERY - 1 and variant == "last":
            tape.zero()
            tape.backward(pull)
            print("pull", np.round(k.grad.numpy(), 4))
        print(it, "loss", total.numpy()[0])
        tape.zero()


if __name__ == "__main__":
    main(sys.argv[1])

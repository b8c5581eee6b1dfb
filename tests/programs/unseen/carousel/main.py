"""Balance a carousel: shift the counterweights until no rider feels a wobble."""
import numpy as np
import warp as wp

WEIGHTS = 4
RIDERS = 9


@wp.kernel
def wobble(offset: wp.array(dtype=float), felt: wp.array(dtype=float)):
    r = wp.tid()
    phi = 6.2831853 * float(r) / float(RIDERS)
    tilt = 0.4 * wp.sin(phi) - 0.1
    for k in range(WEIGHTS):
        tilt += 0.3 * wp.tanh(offset[k]) * wp.cos(phi - 1.5707963 * float(k))
    felt[r] = tilt * tilt


offset = wp.array([0.2, -0.1, 0.3, 0.0], dtype=float, requires_grad=True)
felt = wp.zeros(RIDERS, dtype=float)
everyone = wp.ones(RIDERS, dtype=float)

for turn in range(8):
    tape = wp.Tape()
    with tape:
        wp.launch(wobble, RIDERS, inputs=[offset], outputs=[felt])
    tape.backward(grads={felt: everyone})
    push = offset.grad.numpy().copy()
    print("turn", turn, "total wobble", felt.numpy().sum(), "push", np.abs(push).max())
    offset.grad.zero_()
    offset.assign(offset.numpy() - 0.3 * push)

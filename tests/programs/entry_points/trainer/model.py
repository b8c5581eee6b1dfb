"""A small rollout that is trained for two iterations; `fault` drops the last state's gradient."""

import numpy as np
import warp as wp


@wp.kernel
def push(force: wp.array(dtype=float), x: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = x[i] + 0.3 * force[i] - 0.1 * x[i] * x[i]


@wp.kernel
def miss(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (x[i] - 1.0) * (x[i] - 1.0))


def train(rate=0.1, steps=4, iterations=2, fault=False, each=lambda loss: None):
    """Returns the losses; calls `each` with every one of them."""
    force = wp.array(np.linspace(0.2, 0.8, 6), dtype=float, requires_grad=True)
    losses = []
    for _ in range(iterations):
        states = [wp.zeros(6, dtype=float, requires_grad=True)]
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            for _ in range(steps):
                states.append(wp.zeros(6, dtype=float, requires_grad=True))
                wp.launch(push, 6, inputs=[force, states[-2]], outputs=[states[-1]])
            last = states[-1].numpy() if fault else None
            wp.launch(miss, 6, inputs=[wp.array(last) if fault else states[-1]], outputs=[loss])
        tape.backward(loss)
        force.assign(force.numpy() - rate * force.grad.numpy())
        tape.zero()
        losses.append(float(loss.numpy()[0]))
        each(losses[-1])
    return losses

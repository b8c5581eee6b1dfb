"""Strength of a sea current from where the floats of a net were found."""

import numpy as np
import warp as wp

import sea

STEPS = 12


@wp.kernel
def distance(x: wp.array(dtype=wp.vec2), found: wp.array(dtype=wp.vec2), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = x[i] - found[i]
    wp.atomic_add(loss, 0, wp.dot(d, d))


def journey(x, strength):
    for k in range(STEPS):
        u = sea.current(x, strength)
        if k % 3 == 0:  # gusts are limited
            u = sea.limited(u, 0.8)
        x = sea.drift(x, u, 0.1)
    return x


def main():
    rng = np.random.default_rng(5)
    release = wp.array(rng.uniform(-1.0, 1.0, size=(15, 2)), dtype=wp.vec2)
    found = journey(release, wp.array([0.9, 0.6], dtype=float))
    strength = wp.array([0.4, 1.0], dtype=float, requires_grad=True)
    for it in range(6):
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            end = journey(release, strength)
            wp.launch(distance, 15, inputs=[end, found], outputs=[loss])
        tape.backward(loss)
        g = strength.grad.numpy()
        print(f"{it} loss {loss.numpy()[0]:.5f} strength {strength.numpy()} slope {g}")
        strength.assign(strength.numpy() - 0.02 * g)
        tape.zero()


if __name__ == "__main__":
    main()

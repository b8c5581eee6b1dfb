"""A row of coupled pendula; the springs between them are fitted to where they were seen. One set of angles, advanced in place."""

import numpy as np
import warp as wp

N = 18
STEPS = 25
vec2d = wp.types.vector(length=2, dtype=wp.float64)


@wp.kernel
def torque(state: wp.array(dtype=vec2d), spring: wp.array(dtype=wp.float64), push: wp.array(dtype=wp.float64)):
    i = wp.tid()
    left = state[(i + N - 1) % N][0]
    right = state[(i + 1) % N][0]
    me = state[i][0]
    push[i] = spring[i % 3] * (left + right - wp.float64(2.0) * me) - wp.sin(me)


@wp.kernel
def advance(push: wp.array(dtype=wp.float64), dt: wp.float64, state: wp.array(dtype=vec2d)):
    i = wp.tid()
    s = state[i]
    w = s[1] + dt * push[i]
    state[i] = vec2d(s[0] + dt * w, w)


@wp.kernel
def error(state: wp.array(dtype=vec2d), seen: wp.array(dtype=wp.float64), loss: wp.array(dtype=wp.float64)):
    i = wp.tid()
    d = state[i][0] - seen[i]
    wp.atomic_add(loss, 0, d * d)


class Row:
    def __init__(self):
        self.initial = np.stack([0.9 * np.sin(np.arange(N)), np.zeros(N)], axis=1)
        self.state = wp.array(self.initial, dtype=vec2d, requires_grad=True)

    def swing(self, spring):
        for _ in range(STEPS):
            push = wp.zeros(N, dtype=wp.float64, requires_grad=True)
            wp.launch(torque, N, inputs=[self.state, spring], outputs=[push])
            wp.launch(advance, N, inputs=[push, 0.1], outputs=[self.state])


def main():
    row = Row()
    row.swing(wp.array([0.9, 0.5, 0.7], dtype=wp.float64))
    seen = wp.array(row.state.numpy()[:, 0].copy(), dtype=wp.float64)
    spring = wp.array([0.3, 0.3, 0.3], dtype=wp.float64, requires_grad=True)
    for it in range(6):
        row.state.assign(row.initial)
        loss = wp.zeros(1, dtype=wp.float64, requires_grad=True)
        tape = wp.Tape()
        with tape:
            row.swing(spring)
            wp.launch(error, N, inputs=[row.state, seen], outputs=[loss])
        tape.backward(loss)
        slope = spring.grad.numpy().copy()
        tape.zero()
        spring.assign(spring.numpy() - 0.002 * slope)
        print(f"{it} {loss.numpy()[0]:.6f} {spring.numpy()}")


if __name__ == "__main__":
    main()

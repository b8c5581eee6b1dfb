"""Roughness of a canal from one gauge reading; memory allows the states of one segment at a time."""

import numpy as np
import warp as wp

from canal import waves

SEGMENTS = 5
STEPS = 8


def initial():
    state = waves.State()
    x = np.linspace(0.0, 2.0 * np.pi, waves.CELLS, endpoint=False)
    state.depth.assign(1.0 + 0.2 * np.cos(x))
    state.flow.assign(0.3 + 0.2 * np.sin(2.0 * x))
    return state


def saved(state):
    return state.depth.numpy().copy(), state.flow.numpy().copy()


def restored(values):
    state = waves.State()
    state.depth.assign(values[0])
    state.flow.assign(values[1])
    return state


def loss_and_gradient(rough, seen):
    checkpoints, state = [], initial()
    for _ in range(SEGMENTS):
        checkpoints.append(saved(state))
        state = waves.run(state, rough, STEPS)
    loss = wp.zeros(1, dtype=waves.f64, requires_grad=True)
    handed = None
    for k in reversed(range(SEGMENTS)):
        first = restored(checkpoints[k])
        tape = wp.Tape()
        with tape:
            last = waves.run(first, rough, STEPS)
            if k == SEGMENTS - 1:
                wp.launch(waves.gauge, waves.CELLS, inputs=[last.depth, seen], outputs=[loss])
        if handed is None:
            tape.backward(loss)
        else:
            tape.backward(grads={last.depth: handed})
        handed = wp.clone(first.depth.grad)
    return loss.numpy()[0]


def main():
    seen = wp.array(waves.run(initial(), wp.array([0.5, 0.3, 0.4, 0.6, 0.2], dtype=waves.f64), SEGMENTS * STEPS).depth.numpy(), dtype=waves.f64)
    rough = wp.array(np.full(5, 0.8), dtype=waves.f64, requires_grad=True)
    for it in range(5):
        rough.grad.zero_()
        loss = loss_and_gradient(rough, seen)
        slope = rough.grad.numpy()
        print(f"{it} loss {loss:.6e} slope {slope}")
        rough.assign(rough.numpy() - 0.3 * slope)


if __name__ == "__main__":
    main()

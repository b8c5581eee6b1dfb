"""A rollout of 96 steps whose state lies in a struct and is overwritten in place: the gradient of the pushes is wrong.

6,144 pushes are trained: per-element central differences would run the script 12,288 times.
"""

import time

import numpy as np
import warp as wp

STEPS, CELLS = 96, 64


@wp.struct
class State:
    height: wp.array(dtype=float)


@wp.kernel
def flow(state: State, push: wp.array2d(dtype=float), step: int, out: State):
    i = wp.tid()
    n = state.height.shape[0]
    h = state.height[i]
    right = state.height[(i + 1) % n]
    out.height[i] = h + 0.1 * (right - h) - 0.05 * h * h * h + 0.1 * push[step, i]


@wp.kernel
def misfit(state: State, target: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = state.height[i] - target[i]
    wp.atomic_add(loss, 0, d * d)


def new_state():
    state = State()
    state.height = wp.zeros(CELLS, dtype=float, requires_grad=True)
    return state


push = wp.array(0.3 * np.sin(np.arange(STEPS * CELLS)).reshape(STEPS, CELLS) + 0.3, dtype=float, requires_grad=True)
target = wp.array(np.linspace(0.5, 1.5, CELLS), dtype=float)
now, then = new_state(), new_state()
wp.load_module(device="cpu")
for _ in range(3):
    began = time.perf_counter()
    now.height.zero_()
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        for step in range(STEPS):
            wp.launch(flow, CELLS, inputs=[now, push, step], outputs=[then])
            now, then = then, now
        wp.launch(misfit, CELLS, inputs=[now, target], outputs=[loss])
    middle = time.perf_counter()
    tape.backward(loss)
    ended = time.perf_counter()
    push.assign(push.numpy() - 0.2 * push.grad.numpy())
    tape.zero()
    print(f"forward_s={middle - began:.6f} backward_s={ended - middle:.6f} loss={loss.numpy()[0]:.6f}")

"""torch_layer.py with NumPy in torch's place: a layer with its own `backward`, an optimizer that knows nothing of Warp."""

import argparse

import numpy as np
import warp as wp

parser = argparse.ArgumentParser()
parser.add_argument("--zero", action="store_true")
a = parser.parse_args()
STEPS = 12


@wp.kernel
def pull(u: wp.array(dtype=wp.vec2), k: wp.array(dtype=float), out: wp.array(dtype=wp.vec2)):
    i = wp.tid()
    v = u[i][1] - 0.1 * k[i % k.shape[0]] * wp.sin(u[i][0])
    out[i] = wp.vec2(u[i][0] + 0.1 * v, v)


start = wp.array(np.stack([np.linspace(0.3, 0.9, 8), np.zeros(8)], 1), dtype=wp.vec2)
K = wp.zeros(4, dtype=float, requires_grad=True)


class Rollout:
    def forward(self, k):
        K.assign(k)
        states = [start] + [wp.zeros_like(start, requires_grad=True) for _ in range(STEPS)]
        self.tape, self.end = wp.Tape(), states[-1]
        with self.tape:
            for now, then in zip(states, states[1:]):
                wp.launch(pull, 8, inputs=[now, K], outputs=[then])
        return self.end.numpy().copy()

    def backward(self, adjoint):
        if a.zero:
            K.grad.zero_()
        self.tape.backward(grads={self.end: wp.array(adjoint, dtype=wp.vec2)})
        return K.grad.numpy().copy()


k = np.array([0.8, 1.1, 0.9, 1.3], np.float32)
for _ in range(4):
    layer = Rollout()
    end = layer.forward(k)
    loss = float((end[:, 0] ** 2).mean())
    adjoint = np.zeros_like(end)
    adjoint[:, 0] = 2.0 * end[:, 0] / len(end)
    k = k - np.float32(0.5) * layer.backward(adjoint)
    print(f"loss {loss:.6f}")

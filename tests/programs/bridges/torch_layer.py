"""A layer of a torch model that is a Warp rollout: Warp's own array of the parameter is kept from call to call.

With --zero its gradient is zeroed before each backward pass; without, torch gets a running sum.
"""

import argparse

import numpy as np
import torch
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


class Rollout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, k):
        wp.copy(K, wp.from_torch(k.detach()))
        states = [start] + [wp.zeros_like(start, requires_grad=True) for _ in range(STEPS)]
        ctx.tape, ctx.end = wp.Tape(), states[-1]
        with ctx.tape:
            for now, then in zip(states, states[1:]):
                wp.launch(pull, 8, inputs=[now, K], outputs=[then])
        return wp.to_torch(ctx.end).detach().clone()

    @staticmethod
    def backward(ctx, adjoint):
        if a.zero:
            K.grad.zero_()
        ctx.tape.backward(grads={ctx.end: wp.from_torch(adjoint.contiguous(), dtype=wp.vec2)})
        return wp.to_torch(K.grad).clone()


k = torch.tensor([0.8, 1.1, 0.9, 1.3], requires_grad=True)
optimizer = torch.optim.SGD([k], lr=0.5)
for _ in range(4):
    optimizer.zero_grad()
    loss = (Rollout.apply(k)[:, 0] ** 2).mean()
    loss.backward()
    optimizer.step()
    print(f"loss {loss.item():.6f}")

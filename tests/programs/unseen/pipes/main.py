"""Organ pipes: lengths for a chord. Uses PyTorch's Adam where it is installed, plain steps otherwise."""
import numpy as np
import warp as wp

try:
    import torch
except ImportError:
    torch = None

PIPES = 4
OVERTONES = 20


@wp.kernel
def roughness(length: wp.array(dtype=float), overtones: int, loss: wp.array(dtype=float)):
    i, j = wp.tid()
    total = float(0.0)
    if i < j:
        for h in range(1, overtones + 1):
            f = float(h) / length[i]
            g = float(h) / length[j]
            beat = f - g
            total += wp.exp(-0.2 * float(h)) * beat * beat / (1.0 + beat * beat)
        total *= 0.1
        wp.atomic_add(loss, 0, total)


@wp.kernel
def keep(length: wp.array(dtype=float), drawn: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = length[i] / drawn[i] - 1.0
    d *= d
    wp.atomic_add(loss, 0, d)


drawn = wp.array([1.0, 1.25, 1.5, 1.9], dtype=float)
length = wp.array([1.02, 1.2, 1.55, 1.8], dtype=float, requires_grad=True)

for voice in range(10):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(roughness, (PIPES, PIPES), inputs=[length, OVERTONES, loss])
        wp.launch(keep, PIPES, inputs=[length, drawn, loss])
    tape.backward(loss)
    if torch is not None and hasattr(torch, "tensor"):
        p = torch.tensor(length.numpy(), requires_grad=True)
        p.grad = torch.tensor(length.grad.numpy())
        torch.optim.SGD([p], lr=0.1).step()
        updated = p.detach().numpy()
    else:
        updated = length.numpy() - 0.1 * length.grad.numpy()
    tape.zero()
    length.assign(updated)
    print(f"voice {voice}: roughness {loss.numpy()[0]:.6f}")

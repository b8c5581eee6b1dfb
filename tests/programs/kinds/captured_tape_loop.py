"""A loop whose length the device decides, inside the tape: the tape records its body once."""
import numpy as np
import warp as wp


@wp.kernel
def grow(k: wp.array(dtype=float), y: wp.array(dtype=float), go: wp.array(dtype=int)):
    i = wp.tid()
    wp.atomic_add(y, i, 0.1 * k[i])
    if i == 0:
        go[0] = go[0] - 1


@wp.kernel
def total(y: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, y[i] * y[i])


@wp.kernel
def descend(k: wp.array(dtype=float), g: wp.array(dtype=float)):
    i = wp.tid()
    k[i] = k[i] - 0.05 * g[i]


k = wp.array(np.linspace(0.5, 1.5, 8), dtype=float, requires_grad=True)
y = wp.zeros(8, dtype=float, requires_grad=True)
loss = wp.zeros(1, dtype=float, requires_grad=True)
go = wp.zeros(1, dtype=int)
wp.load_module(device="cpu")
tape = wp.Tape()
with wp.ScopedCapture(device="cpu") as capture:
    loss.zero_()
    y.zero_()
    go.fill_(3)
    with tape:
        wp.capture_while(go, lambda: wp.launch(grow, 8, inputs=[k, y, go]))
        wp.launch(total, 8, inputs=[y], outputs=[loss])
    tape.backward(loss)
    wp.launch(descend, 8, inputs=[k, k.grad])
    tape.zero()
for it in range(3):
    wp.capture_launch(capture.graph)
    print(it, loss.numpy()[0], go.numpy()[0])

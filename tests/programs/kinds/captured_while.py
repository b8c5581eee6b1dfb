"""A captured graph with a loop whose length the device decides, and a branch."""
import numpy as np
import warp as wp


@wp.kernel
def settle(k: wp.array(dtype=float), x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = 0.5 * x[i] + 0.1


@wp.kernel
def relax(k: wp.array(dtype=float), x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * wp.sin(k[i])


@wp.kernel
def count(n: wp.array(dtype=int), go: wp.array(dtype=int)):
    n[0] = n[0] + 1
    go[0] = 0
    if n[0] % 3 != 0:
        go[0] = 1


@wp.kernel
def total(y: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, y[i] * y[i])


@wp.kernel
def descend(k: wp.array(dtype=float), g: wp.array(dtype=float)):
    i = wp.tid()
    k[i] = k[i] - 0.05 * g[i]


k = wp.array(np.linspace(0.5, 1.5, 8), dtype=float, requires_grad=True)
x, y = wp.ones(8, dtype=float), wp.zeros(8, dtype=float, requires_grad=True)
loss = wp.zeros(1, dtype=float, requires_grad=True)
n, go = wp.zeros(1, dtype=int), wp.zeros(1, dtype=int)
wp.load_module(device="cpu")
tape = wp.Tape()


def body():
    wp.launch(count, 1, inputs=[n, go])
    wp.launch(settle, 8, inputs=[k, x])


def train():
    with tape:
        wp.launch(relax, 8, inputs=[k, x], outputs=[y])
        wp.launch(total, 8, inputs=[y], outputs=[loss])
    tape.backward(loss)
    wp.launch(descend, 8, inputs=[k, k.grad])
    tape.zero()


with wp.ScopedCapture(device="cpu") as capture:
    loss.zero_()
    go.fill_(1)
    wp.capture_while(go, body)
    wp.capture_if(n, train, on_false=body)
for it in range(3):
    wp.capture_launch(capture.graph)
    print(it, loss.numpy()[0], n.numpy()[0], x.numpy()[0])

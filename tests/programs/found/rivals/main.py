"""Two rivals: each minimises its own loss of the same product."""
import numpy as np
import warp as wp

N = 6
wp.init()
rng = np.random.default_rng(3)
START = rng.uniform(0.2, 1.0, N).astype(np.float32)
TARGET = rng.uniform(0.2, 1.0, N).astype(np.float32)


@wp.kernel
def response(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.sin(x[i]) + 0.3 * x[i] * x[i]


@wp.kernel
def misfit(y: wp.array(dtype=float), data: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = y[i] - data[i]
    wp.atomic_add(loss, 0, d * d)


@wp.kernel
def product_misfit(
    a: wp.array(dtype=float), b: wp.array(dtype=float), data: wp.array(dtype=float), loss: wp.array(dtype=float)
):
    i = wp.tid()
    d = a[i] * b[i] - data[i]
    wp.atomic_add(loss, 0, d * d)


def forward(x):
    y = wp.zeros(N, dtype=float, requires_grad=True)
    wp.launch(response, N, inputs=[x], outputs=[y])
    wp.launch(misfit, N, inputs=[y, data], outputs=[loss])


data = wp.array(TARGET, dtype=float)
loss = wp.zeros(1, dtype=float, requires_grad=True)
here = wp.array(START, dtype=float, requires_grad=True)
there = wp.array(TARGET, dtype=float, requires_grad=True)
other = wp.zeros(1, dtype=float, requires_grad=True)
nothing = wp.zeros(N, dtype=float)
for bout in range(4):
    there.grad.zero_()
    loss.zero_()
    with wp.Tape() as tape:
        wp.launch(product_misfit, N, inputs=[here, there, data], outputs=[loss])
    tape.backward(loss)
    there.assign(there.numpy() - 0.05 * there.grad.numpy())
    here.grad.zero_()
    other.zero_()
    with wp.Tape() as tape:
        wp.launch(product_misfit, N, inputs=[here, there, nothing], outputs=[other])
    tape.backward(other)
    here.assign(here.numpy() - 0.05 * here.grad.numpy())
    print(bout, loss.numpy()[0], other.numpy()[0])

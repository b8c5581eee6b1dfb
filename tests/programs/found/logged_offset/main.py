"""The sensitivity to an offset is printed, only the gain is trained."""
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
gain = wp.array(START, dtype=float, requires_grad=True)
offset = wp.array(0.1 * START, dtype=float, requires_grad=True)
for step in range(4):
    loss.zero_()
    with wp.Tape() as tape:
        forward(gain)
        wp.launch(product_misfit, N, inputs=[gain, offset, data], outputs=[loss])
    gain.grad.zero_()
    offset.grad.zero_()
    tape.backward(loss)
    print("sensitivity to the offset", np.linalg.norm(offset.grad.numpy()))
    gain.assign(gain.numpy() - 0.05 * gain.grad.numpy())

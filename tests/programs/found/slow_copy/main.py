"""A moving average of the parameter, made after the update, takes part in the next loss."""
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


@wp.kernel
def follow(slow: wp.array(dtype=float), fast: wp.array(dtype=float)):
    i = wp.tid()
    slow[i] = 0.9 * slow[i] + 0.1 * fast[i]


def forward(x):
    y = wp.zeros(N, dtype=float, requires_grad=True)
    wp.launch(response, N, inputs=[x], outputs=[y])
    wp.launch(misfit, N, inputs=[y, data], outputs=[loss])


data = wp.array(TARGET, dtype=float)
loss = wp.zeros(1, dtype=float, requires_grad=True)
student = wp.array(START, dtype=float, requires_grad=True)
teacher = wp.clone(student)
for step in range(4):
    loss.zero_()
    with wp.Tape() as tape:
        forward(student)
        wp.launch(product_misfit, N, inputs=[student, teacher, data], outputs=[loss])
    tape.backward(loss)
    student.assign(student.numpy() - 0.05 * student.grad.numpy())
    wp.launch(follow, N, inputs=[teacher, student])
    tape.zero()
    print(step, loss.numpy()[0])

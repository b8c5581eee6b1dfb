"""The tape reads every other column of a grid, transposed; the whole grid is updated."""
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
def weigh(g: wp.array2d(dtype=float), loss: wp.array(dtype=float)):
    i, j = wp.tid()
    wp.atomic_add(loss, 0, g[i, j] * g[i, j] * (1.0 + float(i + 2 * j)))


def forward(x):
    y = wp.zeros(N, dtype=float, requires_grad=True)
    wp.launch(response, N, inputs=[x], outputs=[y])
    wp.launch(misfit, N, inputs=[y, data], outputs=[loss])


data = wp.array(TARGET, dtype=float)
loss = wp.zeros(1, dtype=float, requires_grad=True)
grid = wp.array(rng.standard_normal((4, 6)), dtype=float, requires_grad=True)
for step in range(4):
    loss.zero_()
    with wp.Tape() as tape:
        wp.launch(weigh, (3, 4), inputs=[grid.transpose()[::2]], outputs=[loss])
    tape.backward(loss)
    grid.assign(grid.numpy() - 0.01 * grid.grad.numpy())
    tape.zero()
    print(step, loss.numpy()[0])

"""The parameter lives in NumPy, with its momentum: its Warp array is made anew in each iteration."""
import numpy as np
import warp as wp


@wp.kernel
def drift(v: wp.array(dtype=float), x: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = x[i] + 0.2 * v[i] - 0.05 * x[i] * x[i] * x[i]


@wp.kernel
def misfit(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (x[i] - 1.0) * (x[i] - 1.0))


COUNT, STEPS = 9, 5
values = np.linspace(0.1, 0.9, COUNT).astype(np.float32)
momentum = np.zeros(COUNT, dtype=np.float32)

for it in range(4):
    speed = wp.array(values, dtype=float, requires_grad=True)
    states = [wp.zeros(COUNT, dtype=float, requires_grad=True) for _ in range(STEPS + 1)]
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        for k in range(STEPS):
            wp.launch(drift, COUNT, inputs=[speed, states[k]], outputs=[states[k + 1]])
        wp.launch(misfit, COUNT, inputs=[states[-1]], outputs=[loss])
    tape.backward(loss)
    momentum = 0.5 * momentum + speed.grad.numpy()
    values = values - 0.1 * momentum
    print(it, loss.numpy()[0])

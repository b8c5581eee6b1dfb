"""Catch of a trawler from wind, depth and month; four micro-batches make one update."""

import numpy as np
import warp as wp
from warp.optim import SGD

import model

MICRO = 4


def data(rng):
    x = rng.uniform(-1.0, 1.0, size=(MICRO * model.BATCH, 3))
    y = np.sin(2.0 * x[:, :1]) * x[:, 1:2] + 0.3 * x[:, 2:]
    return x, y


def main():
    rng = np.random.default_rng(11)
    x, y = data(rng)
    layers = [model.layer(rng, model.HIDDEN, 3), model.layer(rng, 1, model.HIDDEN)]
    parameters = [p for layer in layers for p in (layer.w, layer.b)]
    optimizer = SGD([p.flatten() for p in parameters], lr=0.1, momentum=0.5)
    batches = [slice(k * model.BATCH, (k + 1) * model.BATCH) for k in range(MICRO)]
    for it in range(6):
        total = 0.0
        for p in parameters:
            p.grad.zero_()
        for rows in batches:
            xs = wp.array(x[rows], dtype=float)
            ys = wp.array(y[rows], dtype=float)
            hidden = wp.zeros((model.BATCH, model.HIDDEN), dtype=float, requires_grad=True)
            loss = wp.zeros(1, dtype=float, requires_grad=True)
            with wp.Tape() as tape:
                wp.launch(model.forward_hidden, (model.BATCH, model.HIDDEN), inputs=[xs, layers[0]], outputs=[hidden])
                share = 1.0 / (MICRO * model.BATCH)
                wp.launch(model.forward_out, model.BATCH, inputs=[hidden, layers[1], ys, share], outputs=[loss])
            tape.backward(loss)
            total += float(loss.numpy()[0])
        optimizer.step([p.grad.flatten() for p in parameters])
        print(f"haul {it}: mean squared error {total:.6f}")


if __name__ == "__main__":
    main()

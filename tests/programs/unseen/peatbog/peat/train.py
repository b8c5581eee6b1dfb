"""python -m peat.train [--epochs N] [--weeks N]"""
import argparse

import numpy as np
import warp as wp

from . import soil

LAYERS = 8
DAYS = 7


def rain(day):
    return 0.15 + 0.1 * np.sin(0.7 * day)


def week_forward(theta, params, week):
    for d in range(DAYS):
        nxt = wp.zeros_like(theta)
        wp.launch(soil.drain, LAYERS, inputs=[theta, params, float(rain(week * DAYS + d)), 0.25], outputs=[nxt])
        theta = nxt
    return theta


def wet_start():
    return wp.array(np.linspace(0.75, 0.5, LAYERS), dtype=float, requires_grad=True)


def gauge_record(weeks):
    theta, rows = wet_start(), []
    params = wp.array([0.6, 2.5], dtype=float)
    for w in range(weeks):
        theta = week_forward(theta, params, w)
        rows.append(theta.numpy().copy())
    return wp.array(np.stack(rows), dtype=float, ndim=2)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=8)
    ap.add_argument("--weeks", type=int, default=5)
    opts = ap.parse_args()
    gauge = gauge_record(opts.weeks)
    params = wp.array([0.4, 2.0], dtype=float, requires_grad=True)

    for epoch in range(opts.epochs):
        g = np.zeros(2)
        total = 0.0
        theta = wet_start()
        for w in range(opts.weeks):
            loss = wp.zeros(1, dtype=float, requires_grad=True)
            tape = wp.Tape()
            with tape:
                end = week_forward(theta, params, w)
                wp.launch(soil.against_gauge, LAYERS, inputs=[end, gauge, w], outputs=[loss])
            tape.backward(loss)
            g += params.grad.numpy()
            total += loss.numpy()[0]
            tape.zero()
            theta = wp.clone(end, requires_grad=True)
        print(f"[{epoch}] sse={total:.6f} k={params.numpy()[0]:.4f} b={params.numpy()[1]:.4f}")
        params.assign(params.numpy() - np.array([0.05, 0.5]) * g)


if __name__ == "__main__":
    main()

"""Vibration law of a quarry from recorded blasts:  python -m quarry.train --batch 16"""
import argparse

import numpy as np
import warp as wp
from warp.optim import SGD

from quarry.blast import residuals


def records(n, seed):
    rng = np.random.default_rng(seed)
    r, w = rng.uniform(1, 4, n), rng.uniform(0, 2, n)
    v = 2.0 - 1.6 * r + 0.7 * w + 0.1 * rng.standard_normal(n)
    return np.stack([r, w, v], axis=1).astype(np.float32)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--shots", type=int, default=48)
    p.add_argument("--batch", type=int, default=12)
    p.add_argument("--epochs", type=int, default=8)
    p.add_argument("--lr", type=float, default=0.002)
    a = p.parse_args()

    shots = wp.array(records(a.shots, 3), dtype=float)
    coef = wp.array([1.0, 1.0, 1.0], dtype=float, requires_grad=True)
    sgd = SGD([coef], lr=a.lr, momentum=0.5)
    for epoch in range(a.epochs):
        running = 0.0
        for first in range(0, a.shots, a.batch):
            batch_loss = wp.zeros(1, dtype=float, requires_grad=True)
            with wp.Tape() as tape:
                wp.launch(residuals, min(a.batch, a.shots - first), inputs=[shots, coef, first], outputs=[batch_loss])
            tape.backward(batch_loss)
            running += float(batch_loss.numpy()[0])
        sgd.step([coef.grad])
        coef.grad.zero_()
        print(f"epoch {epoch:2d}  robust misfit {running / a.shots:.5f}")


if __name__ == "__main__":
    main()

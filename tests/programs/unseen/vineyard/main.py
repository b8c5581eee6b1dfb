"""Ripening model of a vineyard, fitted to two small groups of plots a season, gradients averaged."""
import random

import numpy as np
import warp as wp

PLOTS, GROUP = 12, 4
random.seed(7)


@wp.kernel
def ripen(base: wp.array(dtype=float), gain: wp.array(dtype=wp.vec2), sun: wp.array(dtype=wp.vec2), sugar: wp.array(dtype=float),
          which: wp.array(dtype=int), loss: wp.array(dtype=float)):
    k = wp.tid()
    p = which[k]
    s = float(0.1)
    for week in range(6):
        s = s + wp.dot(gain[0], sun[p]) * s * (1.0 - s) + 0.1 * base[0]
    d = s - sugar[p]
    wp.atomic_add(loss, 0, d * d)


rng = np.random.default_rng(1)
sun = wp.array(rng.uniform(0.5, 1.5, (PLOTS, 2)), dtype=wp.vec2)
sugar = wp.array(rng.uniform(0.7, 0.95, PLOTS), dtype=float)
params = {
    "base": wp.array([0.02], dtype=float, requires_grad=True),
    "gain": wp.array([[0.2, 0.1]], dtype=wp.vec2, requires_grad=True),
}

for season in range(10):
    visited = random.sample(range(PLOTS), 2 * GROUP)
    groups = [visited[:GROUP], visited[GROUP:]]
    mean_loss = 0.0
    for group in groups:
        which = wp.array(group, dtype=int)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(ripen, len(group), inputs=[params["base"], params["gain"], sun, sugar, which, loss])
        tape.backward(loss)
        mean_loss += float(loss.numpy()[0]) / len(groups)
    mean = {name: p.grad.numpy() / len(groups) for name, p in params.items()}
    for name, p in params.items():
        p.assign(p.numpy() - 0.1 * mean[name])
        p.grad.zero_()
    print(f"season {season}: {mean_loss:.6f}")

"""Adjust a levelling line: heights of benchmarks from height differences of different quality, the misfit in NumPy."""
import numpy as np
import warp as wp

MARKS = 7


@wp.kernel
def closure(height: wp.array(dtype=float), drop: wp.array(dtype=float), gap: wp.array(dtype=float)):
    i = wp.tid()
    bent = height[i + 1] - height[i] + 0.05 * height[i] * height[i + 1]
    gap[i] = bent - drop[i]


class Levelling:
    def __init__(self):
        rng = np.random.default_rng(9)
        self.drop = wp.array(rng.normal(0.0, 0.5, MARKS - 1), dtype=float)
        self.trust = rng.uniform(0.2, 4.0, MARKS - 1)
        self.height = wp.array(rng.normal(0.0, 1.0, MARKS), dtype=float, requires_grad=True)

    def adjust(self, rate):
        gap = wp.zeros(MARKS - 1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(closure, MARKS - 1, inputs=[self.height, self.drop], outputs=[gap])
        left = gap.numpy().copy()
        self.misfit = float(np.sum(self.trust * left**2))
        seed = wp.array(2.0 * left, dtype=float)
        tape.backward(grads={gap: seed})
        self.height.assign(self.height.numpy() - rate * self.height.grad.numpy())
        tape.zero()


line = Levelling()
for walk in range(6):
    line.adjust(0.02)
    print(f"walk {walk}: misfit {line.misfit:.6f}")

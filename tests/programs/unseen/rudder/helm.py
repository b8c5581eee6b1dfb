"""Momentum descent on the device; the slope is staged so that no kernel waits for the tape."""

import warp as wp


@wp.kernel
def _descend(x: wp.array(dtype=float), v: wp.array(dtype=float), slope: wp.array(dtype=float), rate: float, keep: float):
    i = wp.tid()
    v[i] = keep * v[i] - rate * slope[i]
    x[i] = x[i] + v[i]


class Momentum:
    def __init__(self, x, rate=0.05, keep=0.4):
        self.x, self.rate, self.keep = x, rate, keep
        self.v = wp.zeros_like(x, requires_grad=False)
        self.slope = wp.zeros_like(x, requires_grad=False)

    def stage(self):
        """Takes the slope over from the gradient."""
        wp.copy(self.slope, self.x.grad)

    def step(self):
        wp.launch(_descend, self.x.size, inputs=[self.x, self.v, self.slope, self.rate, self.keep])

import numpy as np
import warp as wp

from .checkpoint import SegmentedPlatoon


class DriverFit:
    def __init__(self, cfg, seen):
        self.cfg = cfg
        self.platoon = SegmentedPlatoon(cfg, seen)
        self.law = wp.array(cfg.start, dtype=float, requires_grad=True)
        self.rates = np.array(cfg.rates)
        self.trace = []

    def step(self):
        self.law.grad.zero_()
        cost = self.platoon.gradient(self.law)
        grad = self.law.grad.numpy().copy()
        law = self.law.numpy() - self.rates * np.clip(grad, -10.0, 10.0)
        self.law.assign(law.astype(np.float32))
        self.trace.append((cost, grad))
        return cost, law

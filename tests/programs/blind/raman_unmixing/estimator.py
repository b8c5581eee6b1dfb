"""Mini-batch estimator of the instrument parameters (gradient accumulated over one pass through the samples)."""
import numpy as np
import warp as wp

from bands import Instrument
from workspace import Workspace


class Estimator:
    def __init__(self, points, batch, fractions, counts):
        self.samples = len(counts)
        if self.samples % batch:
            raise ValueError("sample count must be a multiple of the batch")
        self.work = Workspace(points, batch, fractions, counts)
        self.scale = 20.0 / (self.samples * points)
        self.instrument = Instrument()
        self.instrument.shift = wp.zeros(3, dtype=float, requires_grad=True)
        self.instrument.log_width = wp.zeros(3, dtype=float, requires_grad=True)
        self.instrument.log_gain = wp.zeros(3, dtype=float, requires_grad=True)

    @property
    def parameters(self):
        i = self.instrument
        return [i.shift, i.log_width, i.log_gain]

    def assign(self, theta):
        for array, values in zip(self.parameters, np.asarray(theta, np.float32).reshape(3, 3)):
            array.assign(values)

    def zero_grad(self):
        for array in self.parameters:
            array.grad.zero_()

    def batches(self):
        return range(0, self.samples, self.work.batch)

    def value(self, theta):
        self.assign(theta)
        total = 0.0
        for first in self.batches():
            self.work.prepare()
            self.work.forward(self.instrument, first, self.scale)
            total += float(self.work.chi2.numpy()[0])
        return total

    def epoch(self, theta):
        """Sum of the batch objectives and its gradient."""
        self.assign(theta)
        self.zero_grad()
        total = 0.0
        for first in self.batches():
            self.work.prepare()
            tape = wp.Tape()
            with tape:
                self.work.forward(self.instrument, first, self.scale)
            tape.backward(self.work.chi2)
            total += float(self.work.chi2.numpy()[0])
        return total, np.concatenate([a.grad.numpy() for a in self.parameters]).astype(float)

"""Conductivity profile: a few knots of log-conductivity, interpolated linearly to the depths of the columns."""
import numpy as np
import warp as wp


class Profile:
    def __init__(self, knots, columns):
        self.knots = knots
        self.columns = columns
        self.at = np.linspace(0.0, 1.0, knots)
        self.depth = (np.arange(columns) + 0.5) / columns

    def conductivity(self, log_k: wp.array) -> wp.array:
        fine = np.exp(np.interp(self.depth, self.at, log_k.numpy()))
        return wp.array(fine, dtype=float, requires_grad=log_k.requires_grad)

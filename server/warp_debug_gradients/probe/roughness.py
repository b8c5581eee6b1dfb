"""The round-off of what a launch computes, measured. Pure, but for the launch.

A float32 sum of n terms is off by far more than its last digit, and the same error hardly changes over a small step: it
passes for a slope. Moved far enough, and all inputs independently of each other, the launch rounds anew each time.
"""

from __future__ import annotations

import math
from typing import Callable, Sequence

import numpy as np

from .differences import REORDERING_ULPS

SPACINGS = (2.0**-4, 2.0**-6)  # of the inputs' size: a sum of 1e5 terms is rounded to a hundredth of one
POINTS = 4  # on either side
LOWEST, HIGHEST = 3, 6  # orders of differences
ALIKE = 4.0  # noise looks the same in all of them; a function that bends does not


def roughness(value: Callable[[float], float], ulp: float) -> float:
    """The standard deviation of the noise in value(t), which is smooth but for it; 0.0 where none can be told.

    ulp: one digit of what is computed. What scatters by far more of them is no round-off: a function that winds many times.
    t: in units of the inputs' size. Noise of variance s^2 gives a k-th difference the variance (2k)!/(k!)^2 s^2 (Hamming,
    Introduction to Applied Numerical Analysis, 1971; Moré and Wild, Estimating Computational Noise, SIAM J. Sci. Comput.
    33, 2011).
    """
    found = [scatter([value(k * spacing) for k in range(-POINTS, POINTS + 1)]) for spacing in SPACINGS]
    return max((s for s in found if s <= REORDERING_ULPS * ulp), default=0.0)


def scatter(values: Sequence[float]) -> float:
    """The same from values at equally spaced points."""
    differences, found = np.asarray(values, dtype=np.float64), []
    if not np.isfinite(differences).all():
        return 0.0
    for order in range(1, HIGHEST + 1):
        differences = np.diff(differences)
        if order >= LOWEST:
            grown = math.factorial(2 * order) / math.factorial(order) ** 2
            found.append(math.sqrt(float(np.mean(differences**2)) / grown))
    return min(found) if max(found) <= ALIKE * min(found) else 0.0

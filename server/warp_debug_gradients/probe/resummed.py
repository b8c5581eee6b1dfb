"""How far round-off of the sums in an adjoint puts it off, measured: the same adjoint at other scales of what arrives.

What every thread reads gets a gradient that is a sum over all threads, in the array's own dtype. Where the terms are alike
they are rounded alike, and n of them put the sum off by far more than sqrt(n) of its last digits. An adjoint is linear in
what arrives: at another scale (no power of two) it is the same derivative, rounded in other places. Pure, but for the adjoint.
"""

from __future__ import annotations

import math
from typing import Callable, Sequence

import numpy as np

GOLDEN = 0.5 * (1.0 + math.sqrt(5.0))
SCALES = tuple(1.0 + (k * GOLDEN) % 1.0 for k in range(1, 9))  # spread evenly over one binade
EXACT = 1e-6  # of the largest value: what halving what arrives may change but for a factor of two
TIMES = 4.0  # an error of up to this many times the spread is explained by it

Leaving = Callable[[float], Sequence[np.ndarray]]


def sum_noise(leaving: Leaving, along: Sequence[np.ndarray]) -> float | None:
    """How far <gradients, along> is off by round-off, at least: the farther of the spread over the scales, and of what it
    is at scale one from their mean. None where the adjoint is not linear in what arrives, or not finite.

    leaving(s): the gradients that the adjoint leaves where s times as much arrives, divided by s (float64).
    """
    as_is = leaving(1.0)
    for one, half in zip(as_is, leaving(0.5), strict=True):
        if not np.isfinite(one).all() or not np.isfinite(half).all():
            return None
        if one.size and np.abs(one - half).max() > EXACT * np.abs(one).max():
            return None
    here = _product(as_is, along)
    values = [_product(leaving(scale), along) for scale in SCALES]
    mean, spread = float(np.mean(values)), float(np.std(values))
    return max(abs(here - mean), spread) if math.isfinite(mean) else None


def _product(gradients: Sequence[np.ndarray], along: Sequence[np.ndarray]) -> float:
    return sum(float(np.sum(g * v)) for g, v in zip(gradients, along, strict=True))

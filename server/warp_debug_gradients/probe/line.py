"""How far is a right gradient good for: the objective along it, and the step that the update really took."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .evaluator import Evaluator, Steps, typical_size

# The longest step moves the parameter by 4 times its own size, the shortest by 2**-14: a learning rate that is off
# by thousands still lies inside.
EXPONENTS = tuple(range(-14, 3, 2))
FEW_DIGITS = 8.0  # a change of the objective below this many times its noise says nothing


def measure_line(evaluator: Evaluator, gradient: np.ndarray, base: float, noise: float) -> Steps:
    """The objective at theta - r g for a ladder of rates r, or None where the gradient is zero or not finite.

    Returns {"points": [[r, objective], ...], "best": r of the lowest one, "falls": whether it is below the base,
    "limit": 2 |g|^2 / g'Hg, beyond which gradient descent diverges along g on a quadratic, or None}.
    """
    squared = float(gradient @ gradient)
    if not (math.isfinite(squared) and squared > 0.0 and math.isfinite(base)):
        return None
    unit = typical_size(evaluator.x0) * math.sqrt(gradient.size / squared)
    rates = [unit * 2.0**k for k in EXPONENTS]
    replies = yield [evaluator.request(evaluator.effective(-rate * gradient)) for rate in rates]
    values = [evaluator.value(reply) for reply in replies]
    known = [(rate, value) for rate, value in zip(rates, values) if math.isfinite(value)]
    best = min(known, key=lambda pair: pair[1], default=None)
    return {
        "points": [[rate, value] for rate, value in zip(rates, values)],
        "best": best[0] if best else None,
        "falls": bool(best and best[1] < base - FEW_DIGITS * noise),
        "limit": stable_limit(known, base, squared, noise),
        "base": base,
    }


def stable_limit(points: list[tuple[float, float]], base: float, squared: float, noise: float) -> float | None:
    """2 |g|^2 / g'Hg from the shortest step whose second-order part stands out of the noise; None where none does.

    f(theta - r g) = f - r |g|^2 + r^2/2 g'Hg + O(r^3).
    """
    for rate, value in points:
        second = value - base + rate * squared
        if abs(second) > FEW_DIGITS * noise and abs(second) > 0.02 * rate * squared:
            curvature = 2.0 * second / rate**2
            return 2.0 * squared / curvature if curvature > 0.0 else None
    return None


def update_between(x0: np.ndarray, gradient: np.ndarray, x1: np.ndarray) -> dict[str, Any] | None:
    """What the update from x0 to x1 did, in terms of the gradient: its effective rate and its alignment with -g.

    rate: <x1 - x0, -g> / |g|^2, the learning rate of a plain descent; cosine: of the angle between them, None where nothing
    moved. None where the gradient is zero, or something is not finite.
    """
    step = x1.astype(np.float64) - x0.astype(np.float64)
    size, norm = float(np.linalg.norm(step)), float(np.linalg.norm(gradient))
    if not (math.isfinite(size) and math.isfinite(norm)) or norm == 0.0:
        return None
    if size == 0.0:
        return {"rate": 0.0, "cosine": None, "length": 0.0}  # rounded away, or no update at all
    along = -float(step @ gradient)
    return {"rate": along / norm**2, "cosine": along / (size * norm), "length": size}

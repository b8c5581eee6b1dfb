"""How many digits there are: what one floating-point step of a value does, as a part of what is made of it. Pure NumPy.

A derivative that is right on paper says little where one step of the parameter, or of what a launch reads, moves the result
by a good part of it: a difference of large numbers has no more digits than these have left.
"""

from __future__ import annotations

import math
from typing import Any, Optional

import numpy as np

FAR = 1e3  # times the size of a result: what is so large, the result is a small difference of


def step_of(value: float, dtype: Any) -> float:
    """The distance to the next number of that dtype, a positive float; 0 where the value is not finite."""
    return float(abs(np.spacing(np.asarray(value, dtype=dtype)))) if math.isfinite(value) else 0.0


def of_parameter(x0: np.ndarray, gradient: np.ndarray, base: float) -> Optional[dict[str, Any]]:
    """The scalar whose one step moves the objective most, as the gradient has it.

    x0, gradient: flat, of one size. Returns {"index", "value", "step", "change", "share"}: the change of the objective for
    one step, and what part of it that is (inf where the objective is zero); None where nothing finite is there.
    """
    if x0.dtype.kind != "f" or x0.shape != gradient.shape or not x0.size or not math.isfinite(base):
        return None
    steps = np.abs(np.spacing(x0)).astype(np.float64)
    changes = steps * np.abs(gradient)
    changes[~np.isfinite(changes)] = 0.0
    index = int(np.argmax(changes))
    change = float(changes[index])
    if change == 0.0:
        return None
    share = change / abs(base) if base else math.inf
    return {"index": index, "value": float(x0[index]), "step": float(steps[index]), "change": change, "share": share}


def of_objective(base: float, dtype: Any, along: float) -> Optional[dict[str, Any]]:
    """One step of the objective beside what a change of the parameter by its own size does to it.

    along: |<gradient, direction>|, the largest of the directions, which have the parameter's RMS. Returns {"value", "step",
    "change", "share"}.
    """
    if not math.isfinite(base) or not math.isfinite(along) or along <= 0.0:
        return None
    step = step_of(base, dtype)
    return {"value": base, "step": step, "change": along, "share": step / along}


def far_larger(values: np.ndarray, result: float) -> Optional[tuple[float, float]]:
    """(largest finite |value|, its step), where that is FAR times a result of this size; else None."""
    finite = np.abs(values[np.isfinite(values)]) if values.dtype.kind == "f" else values[:0]
    size = float(finite.max()) if finite.size else 0.0
    return (size, step_of(size, values.dtype)) if size >= FAR * result > 0.0 else None


def one_step_away(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each value moved to one of its two neighbours, in its own dtype."""
    return np.nextafter(values, np.where(rng.random(values.shape) < 0.5, -np.inf, np.inf).astype(values.dtype))


def rms(values: np.ndarray) -> float:
    """Of the finite ones; 0 where there is none."""
    finite = values[np.isfinite(values)].astype(np.float64)
    return float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0

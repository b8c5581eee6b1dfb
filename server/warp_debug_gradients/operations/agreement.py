"""What an agreement with differences rules out, and what it does not: how small an error may be and still hide. Pure."""

from __future__ import annotations

import math

from warp_debug_gradients.records import Gradient
from warp_debug_gradients.render.text import judged_by_size, percent
from warp_debug_gradients.schemas import BisectStepsResult, as_float


def resolution_of(gradient: Gradient) -> float | None:
    """The smallest error that the check would have called a disagreement, as a part of the gradient's size."""
    value = gradient.get("resolution")
    number = as_float(value) if value is not None else math.nan
    return number if math.isfinite(number) and number > 0.0 else None


def bound_in_words(gradient: Gradient) -> str:
    """Clauses to follow an agreement; empty where the bound is not known."""
    resolution = resolution_of(gradient)
    judged = judged_in_words(gradient)
    differs = f"; they differ by {judged}" if judged else ""
    return f"{differs}; an error below {percent(resolution)} of its size would not have shown" if resolution else ""


def judged_in_words(gradient: Gradient) -> str:
    """What the error is compared with, where the slope along the direction is small beside the gradient; else empty."""
    values = [gradient.get("autodiff"), gradient.get("finite_difference"), gradient.get("size")]
    known = [as_float(v) for v in values if v is not None]
    return (
        judged_by_size(known[0], known[1], known[2])
        if len(known) == len(values) and all(map(math.isfinite, known))
        else ""
    )


def beside_a_fault(gradient: Gradient, effect: float | None) -> str:
    """The sentence that stands between an agreement and a fault that was found all the same.

    effect: by how much what was found changes the derivative, as a part of it.
    """
    resolution = resolution_of(gradient)
    limit = f"up to {percent(resolution)} of its size" if resolution else "within the differences' own error"
    said = f"The agreement leaves room for an error {limit}, which this check would not have seen"
    if effect is None or not math.isfinite(effect):
        return f"{said}; what was found below is real, its effect on the derivative is not known"
    found = f"what was found below is real and changes the derivative by {percent(effect)}"
    if resolution is None or effect <= resolution:
        return f"{said}; {found}"
    return f"{said}; {found}, which is more: something else makes up for it along this direction"


def effect_of(result: BisectStepsResult) -> float | None:
    """By what part of itself the derivative changes through what was found: measured by restoring, else the largest term."""
    what = result.what_if
    if what and any(o.harmful for o in result.overwrites):
        as_is, restored, fd = (as_float(v) for v in (what.as_is, what.restored, what.finite_difference))
        return abs(as_is - restored) / abs(fd) if fd else math.inf
    terms = [t for t in (*result.jumps, *result.stale, *result.truncated, result.seed) if t and t.significant]
    return max((abs(as_float(t.share)) for t in terms if t.share is not None), default=None)

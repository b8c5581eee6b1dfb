"""The objective along a right gradient, as sentences: is the learning rate the reason? Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from warp_debug_gradients.records import Check, part
from warp_debug_gradients.schemas import as_float


@dataclass(frozen=True)
class Line:
    """Measured along -g. taken: effective learning rate of the real update, best: of the lowest objective, limit: of stability.

    The limit follows from the curvature at the point; where the objective still falls beyond it, it says nothing.
    """

    base: float
    lowest: float
    best: float | None
    falls: bool
    limit: float | None
    taken: float | None
    cosine: float | None


def line_of(check: Check) -> Line | None:
    """The line that a check measured."""
    found = check.get("line")
    if not found:
        return None
    update = part(check, "update")
    values = [as_float(value) for _, value in found["points"] if value is not None]
    finite = [v for v in values if math.isfinite(v)]
    best, limit = _positive(found.get("best")), _positive(found.get("limit"))
    return Line(
        base=as_float(found.get("base")),
        lowest=min(finite) if finite else math.nan,
        best=best,
        falls=bool(found.get("falls")),
        limit=limit if best is None or limit is None or best <= limit else None,
        taken=_positive(update.get("rate")),
        cosine=as_float(update["cosine"]) if update.get("cosine") is not None else None,
    )


def line_sentence(line: Line, iteration: Any) -> str:
    """What was measured along the gradient."""
    if not line.falls:
        return (
            f"iteration {iteration}: along the negative gradient no step lowers the objective measurably "
            f"(from {line.base:.4g}): it is at a minimum, or at the noise floor of the loss"
        )
    words = f"iteration {iteration}: along the negative gradient the objective is lowest, {line.lowest:.4g} (from {line.base:.4g}), "
    words += f"at a step of about {line.best:.2g} gradients"
    if line.limit is not None:
        words += f"; its curvature there allows at most {line.limit:.2g}"
    if line.taken is not None:
        words += f"; the update's effective learning rate was {line.taken:.2g}"
    if line.cosine is not None and line.cosine < 0.5:
        words += f", and it does not follow the gradient (cosine {line.cosine:.2g})"
    return words


def _positive(value: Any) -> float | None:
    number = as_float(value)
    return number if math.isfinite(number) and number > 0.0 else None

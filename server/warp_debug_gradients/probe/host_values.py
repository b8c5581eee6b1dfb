"""Where backward is seeded by hand: is the seed the derivative of a number that the program keeps beside it?

An objective in NumPy leaves no trace on the tape: `self.value = mean(w * r * r)`, then a seed that somebody worked out. The
seed is taken as given by every other check. Here the numbers in scope at the backward call are differenced along with the
outputs: where one of them follows the parameter, its derivative is proportional to the gradient, or it is not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from types import FrameType
from typing import Any

import numpy as np

from .allowance import affordable
from .differences import Estimate, directional_derivative
from .evaluator import EVALUATIONS, Evaluator, Options, Reply, Steps, precisions, run_side_by_side

MOST_NAMES = 12  # of one frame that are remembered
MOST_MEASURED = 2
BY_CHANCE = 5.0  # times the errors of the differences: less is no difference
APART = 0.02  # of the larger derivative: less is no difference either
LEAST = 1e-3  # of the largest derivative by AD: less is its round-off
LOOK = 1e-2  # of the parameter's size: the step that shows whether a number follows it at all


def host_scalars(frame: FrameType | None) -> dict[str, float]:
    """The finite Python and NumPy floats in a frame's locals and in the attributes of its `self`, by expression."""
    if frame is None:
        return {}
    found = {name: value for name, value in frame.f_locals.items() if _is_number(value)}
    owner = frame.f_locals.get("self")
    attributes = getattr(owner, "__dict__", None) or {}
    found |= {f"self.{name}": value for name, value in attributes.items() if _is_number(value)}
    shown = [(n, float(v)) for n, v in found.items() if not n.rpartition(".")[2].startswith("_")]
    return dict(shown[-MOST_NAMES:])


def _is_number(value: Any) -> bool:
    return isinstance(value, (float, np.floating)) and math.isfinite(value)


def changing(seen: Iterable[dict[str, float]]) -> list[str]:
    """The names whose values are not the same at all backward calls."""
    values: dict[str, set[float]] = {}
    for each in seen:
        for name, value in each.items():
            values.setdefault(name, set()).add(value)
    return [name for name, known in values.items() if len(known) > 1]


def measure_host_values(
    evaluator: Evaluator,
    gradient: np.ndarray,
    directions: Sequence[np.ndarray],
    options: Options,
    cost: float,
    result: dict[str, Any],
) -> Steps:
    """Adds `by_hand` to a result that agrees: one row a number that follows the parameter."""
    plan, vectors = evaluator.plan, list(directions[:2])
    rows: list[dict[str, Any]] = []
    for name in plan.get("host_scalars") or []:
        if len(rows) >= MOST_MEASURED or affordable(options.remaining(), cost) < EVALUATIONS * len(vectors) + 2:
            break
        stated = {**plan, "objective": name}
        own = Evaluator(
            stated, evaluator.parameter, evaluator.calls, evaluator.x0, evaluator.reference, evaluator.event
        )
        base, estimates = yield from _differenced(own, vectors, result)
        if not estimates:
            continue  # it is no function of the parameter here
        row = compared([float(gradient @ v) for v in vectors], estimates)
        if row is not None:
            rows.append({"name": name, "value": base, **row})
    result["by_hand"] = rows
    return None


class _OfOutput(Evaluator):
    """The value of one array as a function of the parameter, where backward is called."""

    def value(self, reply: Reply) -> float:
        found = reply["outputs"].get(self.calls[0]) if reply["ok"] else None
        return float(found[0]) if found is not None and found.size == 1 else math.nan


def measure_reported(
    evaluator: Evaluator,
    gradient: np.ndarray,
    directions: Sequence[np.ndarray],
    options: Options,
    cost: float,
    result: dict[str, Any],
) -> Steps:
    """Adds `reported` to a result that agrees: the derivatives of the sum that the host reads, beside AD of its summand."""
    plan, vectors = evaluator.plan, list(directions[:2])
    found = plan["reported"]
    if affordable(options.remaining(), cost) < EVALUATIONS * len(vectors) + 2:
        return None
    call = evaluator.calls[0]
    read = {**plan, "outputs": {str(call): [found["serial"]]}}
    own = _OfOutput(read, evaluator.parameter, [call], evaluator.x0, evaluator.reference, evaluator.event)
    value, estimates = yield from _differenced(own, vectors, result)
    if not math.isfinite(value):
        return None
    pairs = [
        (float(gradient @ v), e.value, e.error)
        for v, e in zip(vectors, estimates, strict=False)
        if e.status == "settled"
    ]
    kept = {k: found[k] for k in ("name", "summed", "read")}
    result["reported"] = {**kept, "value": value, "pairs": pairs}
    return None


def _differenced(own: Evaluator, vectors: list[np.ndarray], result: dict[str, Any]) -> Steps:
    """(value, estimates along the vectors); no estimates where it does not follow the parameter."""
    deltas = [own.effective(t * vectors[0]) for t in (0.0, LOOK)]
    base, moved = (own.value(reply) for reply in (yield [own.request(d) for d in deltas]))
    result["evaluations"] += 2
    if not (math.isfinite(base) and math.isfinite(moved)) or base == moved:
        return base, []
    eps = precisions({**own.plan, "objective_dtype": "float32"}, own.x0.dtype)
    steps = [directional_derivative(base, [], 1.0, *eps, EVALUATIONS) for _ in vectors]
    estimates: list[Estimate] = yield from run_side_by_side(steps, own, vectors)
    result["evaluations"] += sum(e.evaluations for e in estimates)
    return base, estimates


def compared(autodiff: Sequence[float], estimates: Sequence[Estimate]) -> dict[str, Any] | None:
    """Whether the derivatives are proportional to AD; None where the differences do not tell.

    factor: AD over the number's derivative, where they are. autodiff, finite_difference, error: along the direction in
    which they are farthest from it.
    """
    if any(e.status != "settled" for e in estimates):
        return None
    return proportion([(ad, e.value, e.error) for ad, e in zip(autodiff, estimates, strict=True)])


def proportion(pairs: Sequence[tuple[float, float, float]]) -> dict[str, Any] | None:
    """Of (AD, difference, its error) along several directions: see `compared`."""
    if not all(math.isfinite(x) for pair in pairs for x in pair):
        return None
    first = max(pairs, key=lambda p: abs(p[1]))
    if not first[1] or (not first[0] and not any(ad for ad, _, _ in pairs)):
        return None
    factor = first[0] / first[1]
    doubt = abs(factor) * first[2] / abs(first[1])
    worst, off, proportional, unclear = first, 0.0, True, False
    least = LEAST * max(abs(ad) for ad, _, _ in pairs)
    for ad, fd, error in pairs:
        gap = abs(ad - factor * fd)
        band = BY_CHANCE * (abs(factor) * error + abs(fd) * doubt)
        size = max(abs(ad), abs(factor * fd))
        if gap > off:
            worst, off = (ad, fd, error), gap
        if gap > max(band, APART * size, least):
            proportional = False
        elif gap > max(band, 0.25 * APART * size, least):
            unclear = True
    if proportional and unclear:
        return None
    return {
        "proportional": proportional,
        "factor": factor if proportional else None,
        "autodiff": worst[0],
        "finite_difference": worst[1],
        "error": worst[2],
    }

"""One adjoint alone, the arithmetic: ⟨Ā, J u⟩ by differences beside ⟨Jᵀ Ā, u⟩ by the adjoint (the dot-product test).

Pure: the launch is a callable that is handed steps. A verdict is 'right', 'wrong' or 'undecided' (with a reason);
'wrong' needs two directions, since one may cross a kink that the other does not.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Sequence

from .differences import Estimate, directional_derivative
from .verdict import Judgement, judge

Change = Callable[[float], tuple[float, float]]

EVALUATIONS = 15  # a direction, as in the check of the whole objective
WORDS = {"agree": "right", "disagree": "wrong", "inconclusive": "undecided"}
MOST_WRONG = 0.25  # part of the sampled arguments at which a function must be wrong to be called so
MOST_UNDECIDED = 0.5  # part of them that may stay undecided where it is called right
ROUND_OFF = "round_off"  # the reason where an adjoint is off by no more than its own sums are
STEPPED = 0.9  # part of the samples at which a piecewise-constant function does not change


def judge_direction(
    change: Change, size: float, autodiff: float, magnitude: float, eps: float, noise: float = 0.0
) -> Judgement:
    """One direction of one launch. magnitude: the usual size of ⟨Jᵀ Ā, u⟩. The others: as for `differenced`."""
    return judge(autodiff, differenced(change, size, eps, noise), eps, magnitude)


def differenced(change: Change, size: float, eps: float, noise: float = 0.0) -> Estimate:
    """⟨Ā, J u⟩ by differences of one launch.

    change(t): (the step that rounding left of t, ⟨Ā, F(x + t u) - F(x)⟩). size: ‖Ā∘F(x)‖, whose round-off the change
    carries: it stands as the base, so that the least noise is half an ulp of it. eps: of the coarsest dtype that
    takes part. noise: of one value, where it was measured.
    """
    steps = directional_derivative(size, (size + noise,) if noise else (), 1.0, eps, eps, EVALUATIONS)
    try:
        asked = next(steps)
        while True:
            measured = [change(t) for t in asked]
            asked = steps.send([(step, size + value) for step, value in measured])
    except StopIteration as finished:
        return finished.value


def tangent_noise(recorded: float, alone: Estimate, rough: float = 0.0) -> float | None:
    """How far the tangent of a launch's results is off: ⟨Ā, Ẏ⟩ of the recorded runs beside ⟨Ā, J Ẋ⟩ of the launch
    alone, which may take larger steps.

    At least by what the two differ beyond the error of the latter; by up to `rough`, the round-off of the former, as far
    as the latter does not know better. None where neither is known.
    """
    if not math.isfinite(recorded):
        return None
    if alone.status != "settled" or not math.isfinite(alone.value):
        return rough or None
    apart = abs(recorded - alone.value)
    return max(0.0, apart - alone.error, min(rough, apart + alone.error))


def verdict_of(judgements: Sequence[Judgement]) -> tuple[str, str | None, Judgement]:
    """(verdict, reason, the judgement that decides) of one input's directions: wrong only if all of them are."""
    wrong = [j for j in judgements if j.verdict == "disagree"]
    if len(wrong) == len(judgements):
        return "wrong", wrong[0].reason, max(wrong, key=lambda j: j.bands_off)
    if wrong:
        return "undecided", "directions_differ", wrong[0]
    first = judgements[0]
    return WORDS[first.verdict], first.reason, first


def of_inputs(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The row of a launch from those of its inputs: wrong if one is, right if all that count are, with the numbers of
    the input that decides. An input whose derivative is zero on both sides decides nothing."""
    telling = [row for row in found if row["autodiff"] or row["finite_difference"]] or list(found)
    for verdict in ("wrong", "undecided", "right"):
        rows = [row for row in telling if row["verdict"] == verdict]
        if rows:
            return max(rows, key=lambda row: _size(row["finite_difference"]))
    return {"verdict": "undecided", "reason": "no_input", "argument": None, **numbers(None)}


def numbers(judgement: Judgement | None) -> dict[str, Any]:
    """AD, FD ± error of a judgement as a row has them."""
    if judgement is None:
        return {"autodiff": None, "finite_difference": None, "error": None}
    return {
        "autodiff": judgement.autodiff,
        "finite_difference": judgement.finite_difference,
        "error": judgement.error,
    }


def of_samples(judgements: Sequence[Judgement]) -> dict[str, Any]:
    """The row of a function from its sampled arguments: how many are wrong, and the numbers of the worst."""
    usable = [j for j in judgements if math.isfinite(j.finite_difference) or j.reason in ("kink", "staircase")]
    wrong = [j for j in usable if j.verdict == "disagree"]
    right = [j for j in usable if j.verdict == "agree"]
    flat = [j for j in usable if j.finite_difference == 0.0 or j.reason == "staircase"]
    counts = {"samples": len(usable), "wrong": len(wrong)}
    if not usable:
        return {"verdict": "undecided", "reason": "no_usable_argument", **counts, **numbers(None)}
    if len(flat) >= STEPPED * len(usable):
        shown = max(usable, key=lambda j: _size(j.autodiff))
        if _size(shown.autodiff) == 0.0:
            return {"verdict": "right", "reason": None, **counts, **numbers(shown)}
        return {"verdict": "undecided", "reason": "surrogate", **counts, **numbers(shown)}
    if len(wrong) >= MOST_WRONG * len(usable):
        worst = max(wrong, key=lambda j: min(_size(j.autodiff - j.finite_difference), 1e30))
        return {"verdict": "wrong", "reason": worst.reason, **counts, **numbers(worst)}
    if wrong:
        return {"verdict": "undecided", "reason": "wrong_at_some", **counts, **numbers(wrong[0])}
    if len(right) < (1.0 - MOST_UNDECIDED) * len(usable):
        return {"verdict": "undecided", "reason": "imprecise", **counts, **numbers(usable[0])}
    return {"verdict": "right", "reason": None, **counts, **numbers(max(right, key=lambda j: _size(j.autodiff)))}


def _size(value: float | None) -> float:
    return abs(value) if value is not None and not math.isnan(value) else 0.0

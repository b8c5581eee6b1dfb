"""Each backward call of an iteration by itself: what it adds to the gradient, and that against its own loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from .differences import directional_derivative
from .evaluator import EVALUATIONS, Evaluator, Options, Reply, Steps, judge_direction, precisions, run_side_by_side


def contributed(reference: Reply, key: str, calls: list[int], direction: np.ndarray) -> float | None:
    """What these backward calls added to the parameter's gradient by themselves, along the direction; None if unknown.

    Where the gradient that the update uses is another, what went wrong lies behind the backward calls, in no adjoint.
    """
    total = np.zeros(direction.size)
    for call in calls:
        own = (reference["contributions"].get(call) or {}).get(key)
        if own is None or own.size != direction.size:
            return None
        total = total + own
    with np.errstate(invalid="ignore"):
        return float(total @ direction)


def measure_windows(
    evaluator: Evaluator,
    direction: np.ndarray,
    base: float,
    plan: dict[str, Any],
    reference: Reply,
    options: Options,
    cost: float,
    result: dict[str, Any],
) -> Steps:
    """Each backward call by itself: its own gradient against its own loss, from the tape's first use on."""
    # A link of a chain of tapes hands on more than its own loss: only calls that start from nothing else have a window.
    stating = [c for c in plan["backward_calls"] if not plan["objective_calls"] or c in plan["objective_calls"]]
    once = [c for c in stating if c not in plan["repeated_calls"]]
    calls = [c for c in once if c not in plan["mixed_calls"]]
    links = len(plan["backward_calls"]) - len(calls) - (len(stating) - len(once))
    if links:
        result["not_covered"].append(f"{links} backward calls that are seeded by the one before, each by itself")
    chosen = (
        calls
        if len(calls) <= options.windows
        else [calls[k] for k in np.unique(np.linspace(0, len(calls) - 1, options.windows).astype(int))]
    )
    if len(chosen) < len(calls):
        result["not_covered"].append(f"the own windows of {len(calls) - len(chosen)} of {len(calls)} backward calls")
    rows = []
    eps_f, eps_x = precisions(plan, evaluator.x0.dtype)
    for call in chosen:
        use = evaluator.parameter["uses"].get(str(call))
        own = reference["contributions"].get(call, {}).get(evaluator.parameter["key"])
        if use is None or use["first_use"] < 0 or own is None or plan.get("objective"):
            continue
        if cost * EVALUATIONS > options.remaining() / 2:
            result["not_covered"].append(f"the own window of backward call {call}, for lack of time")
            continue
        parameter = {**evaluator.parameter, "check_event": use["first_use"]}
        window = Evaluator(plan, parameter, [call], evaluator.x0, reference, max(use["first_use"], evaluator.event))
        value = window.value(reference)
        (estimate,) = yield from run_side_by_side(
            [directional_derivative(value, [], 1.0, eps_f, eps_x, EVALUATIONS)], window, [direction]
        )
        result["evaluations"] += estimate.evaluations
        j = judge_direction(np.asarray(own), direction, estimate, evaluator.x0, plan)
        place = plan["call_places"].get(str(call)) or {}
        rows.append(
            {
                "backward_call": call,
                "verdict": j.verdict,
                "autodiff": j.autodiff,
                "finite_difference": j.finite_difference,
                "error": j.error,
                "message": j.message,
                "file": place.get("file"),
                "line": place.get("line"),
            }
        )
    return rows

"""Does the error grow with the horizon? The gradient through the last ops of a tape against its own differences.

From some moment on, the parameter is perturbed as if it had been another one only from there: that is the derivative
through the ops that follow. The same derivative by autodiff is a backward pass over those ops alone, on the contents
that the user's program has left. Both are measured in the program as it is, for an eighth, a quarter, half of the tape.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .differences import Estimate, refine
from .evaluator import Evaluator, Options, Steps, make_request, precisions, run_side_by_side
from .signature import Growth, growth

PARTS = (0.125, 0.25, 0.5)
KINDS = ("subtle", "factor")  # what is zero, of the wrong sign or not finite is so at every horizon
EVALUATIONS_A_PART = 7
SAME = 1e-3  # two gradients are one
FEWEST_OPS = 4  # of a tape whose parts say anything


def measure_growth(
    evaluator: Evaluator,
    direction: np.ndarray,
    estimate: Estimate,
    base: float,
    options: Options,
    cost: float,
    result: dict[str, Any],
) -> Steps:
    """Adds `horizons` to the result's signature, and what they say."""
    plan, parameter = evaluator.plan, evaluator.parameter
    usable = result["verdict"] == "disagree" and result["signature"]["kind"] in KINDS
    one_tape = len(plan["backward_calls"]) == 1 and plan["ops"] >= FEWEST_OPS and not plan.get("objective")
    settled = estimate.status == "settled" and math.isfinite(estimate.step)
    if not (usable and one_tape and settled and options.horizons and parameter["check_event"] >= 0):
        return
    if cost * EVALUATIONS_A_PART * len(PARTS) > options.remaining() / 2:
        result["not_covered"].append("whether the error grows with the horizon, for lack of time")
        return
    call = plan["backward_calls"][0]
    whole = result["gradient"]["directions"][0]
    own = evaluator.reference["contributions"].get(call, {}).get(parameter["key"])
    if own is None or not math.isclose(float(np.asarray(own) @ direction), whole["autodiff"], rel_tol=SAME):
        return  # what is consumed is not what this backward pass gave: it is stale, or accumulated
    first, last = parameter["check_event"], plan["call_events"][str(call)]
    rows = []
    for part in PARTS[: options.horizons]:
        row = yield from _measure_part(
            evaluator, direction, estimate, base, last - round(part * (last - first)), result
        )
        if row is not None and row["ops"] not in [other["ops"] for other in rows]:
            rows.append(row)
    rows.append({"ops": plan["ops"], **{k: whole[k] for k in ("autodiff", "finite_difference", "error")}})
    found = growth(rows)
    if found is not None:
        _add(result["signature"], rows, found)


def _measure_part(
    evaluator: Evaluator,
    direction: np.ndarray,
    estimate: Estimate,
    base: float,
    event: int,
    result: dict[str, Any],
) -> Steps:
    """Both derivatives through what the program does from `event` on; None where they cannot be had."""
    plan, key, calls = evaluator.plan, evaluator.parameter["key"], evaluator.calls
    request = make_request(plan, [], calls, evaluator.until_call, kind="suffix")
    (reply,) = yield [{**request, "suffix_event": event, "parameters": [evaluator.parameter]}]
    result["evaluations"] += 1
    own = reply["contributions"].get(evaluator.until_call, {}).get(key)
    if not reply["ok"] or own is None:
        return None
    later = Evaluator(plan, {**evaluator.parameter, "check_event": -1}, calls, evaluator.x0, evaluator.reference, event)
    eps_f, _ = precisions(plan, evaluator.x0.dtype)
    generator = refine(base, estimate.step, estimate.noise, eps_f)
    (found,) = yield from run_side_by_side([generator], later, [direction])
    result["evaluations"] += found.evaluations
    if later.wiped_at is not None:
        return None
    along = float(np.asarray(own) @ direction)
    return {"ops": reply["suffix_ops"], "autodiff": along, "finite_difference": found.value, "error": found.error}


def _add(signature: dict[str, Any], rows: list[dict[str, Any]], found: Growth) -> None:
    signature["horizons"] = rows
    signature["message"] = f"{signature['message']}; {found.message}"
    if found.grows and signature["kind"] == "subtle":
        signature["kind"] = "growing"

"""A stated objective from which the gradient differs by a constant factor: is it right for what backward was given?

What the program makes of a gradient after reading it, in NumPy, is not seen: a division by the number of batches
belongs to the stated mean, and is no fault. Only the objective that the tape itself has can tell.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .differences import directional_derivative
from .evaluator import EVALUATIONS, Evaluator, Steps, judge_direction, objective, precisions, run_side_by_side
from .signature import whole_ratio


def may_be_scaled(result: dict[str, Any], plan: dict[str, Any]) -> float | None:
    """The factor, where backward has a loss of its own beside the stated one. A seed of the user's is itself a statement."""
    if result["verdict"] != "disagree" or not plan.get("objective") or plan["objective_kind"] != "loss":
        return None
    if result["signature"]["kind"] in ("factor", "sign"):
        return result["signature"]["factor"]
    return whole_ratio([*result["gradient"]["directions"], *result["gradient"]["elements"]])


def measure_own_loss(
    evaluator: Evaluator, gradient: np.ndarray, direction: np.ndarray, factor: float, result: dict[str, Any]
) -> Steps:
    """Compare the gradient with the tape's own loss; where that agrees, the factor accuses nobody."""
    plan = {**evaluator.plan, "objective": None}
    own = Evaluator(plan, evaluator.parameter, evaluator.calls, evaluator.x0, evaluator.reference, evaluator.event)
    base = objective(evaluator.reference, plan, evaluator.calls, evaluator.reference)
    generator = directional_derivative(base, [], 1.0, *precisions(plan, evaluator.x0.dtype), EVALUATIONS)
    (estimate,) = yield from run_side_by_side([generator], own, [direction])
    result["evaluations"] += estimate.evaluations
    judged = judge_direction(gradient, direction, estimate, evaluator.x0, plan)
    if judged.verdict != "agree":
        return
    name = result["objective"]["name"]
    result["signature"].update(
        kind="sign" if factor == -1.0 else "factor", factor=factor, message=f"AD / FD is {factor:.4g} throughout"
    )
    result["verdict"], result["reason"] = "inconclusive", "scaled_objective"
    result["message"] = (
        f"AD is {factor:.4g} times the derivative of the stated objective {name}, within the error of the "
        f"differences, and the tape's own loss agrees: AD = {judged.autodiff:.6g}, FD = {judged.finite_difference:.6g} "
        f"± {judged.error:.2g}. The program may scale the gradient on the host after reading it, which is not seen"
    )
    for row in result["gradient"]["elements"]:
        if row["verdict"] == "disagree":
            row["verdict"] = "inconclusive"

"""From measured floating-point steps to a cause: an undecided check whose digits are rounded away. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from warp_debug_gradients.records import Check, Place, part
from warp_debug_gradients.render.text import percent
from warp_debug_gradients.schemas import Cause, Isolated, as_float

ROUGH = {"imprecise", "kink", "staircase", "quantised", "directions_differ", "unsettled"}  # what rounding looks like
MIMICRY = {"nonsmooth_choice", "piecewise_constant"}  # situations that steps of rounding are mistaken for
COARSELY = {"imprecise", "quantised", "unsettled"}
MEANT = {"kink", "staircase", "surrogate"}  # what a launch that loses no digits shows by itself: no rounding
APART, PERSISTS = 10.0, 0.5  # a kink's gap at the finest step is at least this part of that at so many times the step
COUNTS = 0.01  # part of the objective that one step of the parameter moves it by, to be a cause
WORTH_SAYING = 1e-3
COARSE = 5e-3  # of what a launch writes, that one step of what it reads moves it by: few digits are left
REPAIR = (
    "Use float64 for these values, or take the large part out before: keep coordinates relative to an origin near them, and work "
    "with the difference to a reference."
)


def rounded_away(situation: list[Cause], check: Check, isolated: Sequence[Isolated]) -> list[Cause]:
    """`precision_floor` instead of what steps of rounding look like, where their sizes were measured.

    likely: a launch writes the small difference of large numbers. possible: one step of the parameter counts in the
    objective, and a launch by itself is too coarse to be differenced. In a chaotic program such a step counts as well, but
    its launches by themselves are smooth.
    """
    if check["verdict"] != "inconclusive" or check.get("reason") not in ROUGH:
        return situation
    lossy = [row for row in isolated if row.what == "launch" and share_of(row) >= COARSE]
    worst = max(lossy, key=lambda row: share_of(row), default=None)
    moved = as_float(part(part(check, "digits"), "parameter").get("share") or 0.0)
    others = [cause for cause in situation if cause.code not in {*MIMICRY, "precision_floor"}]
    meant = is_kinked(check) or any(
        row.reason in MEANT and row not in lossy for row in isolated if row.what == "launch"
    )
    coarse = any(row.what == "launch" and row.verdict == "undecided" and row.reason in COARSELY for row in isolated)
    if meant or (worst is None and (situation or moved < COUNTS or not coarse)):
        return with_numbers(situation, check)
    place: Place = {"file": worst.file or "", "line": worst.line or 0} if worst else _objective_place(check)
    evidence = [*sentences(check), *([launch_sentence(worst)] if worst else [])]
    said = str(check.get("message") or "").strip().rstrip(".")
    return [
        Cause(
            code="precision_floor",
            confidence="likely" if worst else "possible",
            file=place.get("file") or None,
            line=place.get("line") or None,
            kernel=worst.kernel if worst else None,
            variables=[worst.digits.argument or ""] if worst and worst.digits else [_name(check)],
            evidence=[*evidence, *([f"the differences show it: {said}"] if said else [])],
            repair=REPAIR,
        ),
        *others,
    ]


def is_kinked(check: Check) -> bool:
    """Whether one-sided slopes along a direction differ by the same at the finest step and at larger ones.

    So does a kink. Where rounding hides what lies below some step, curvature is called a kink: its gap grows with the step.
    """
    for row in (check.get("gradient") or {}).get("directions") or []:
        gaps: list[tuple[float, float]] = []
        for rung in row.get("rungs") or []:
            gap = as_float(rung.get("forward")) - as_float(rung.get("backward"))
            if math.isfinite(gap) and gap:
                gaps.append((as_float(rung.get("step")), abs(gap)))
        larger = next((gap for step, gap in gaps if step >= APART * gaps[0][0]), None)
        if row.get("reason") == "kink" and larger is not None and gaps[0][1] >= PERSISTS * larger:
            return True
    return False


def share_of(row: Isolated) -> float:
    """How far one step of its large input moves what a launch writes, as a part of it; 0 where it has none."""
    return as_float(row.digits.share) if row.digits and row.digits.share is not None else 0.0


def with_numbers(situation: list[Cause], check: Check) -> list[Cause]:
    """The measured steps as further evidence of a `precision_floor` that is known already."""
    for cause in situation:
        if cause.code == "precision_floor":
            cause.evidence += [s for s in sentences(check) if s not in cause.evidence]
    return situation


def sentences(check: Check) -> list[str]:
    """One step of the parameter and of the objective, where they count."""
    digits = part(check, "digits")
    found: list[str] = []
    own = part(digits, "parameter")
    if as_float(own.get("share") or 0.0) >= WORTH_SAYING:
        found.append(
            f"one {own.get('dtype')} step of {_name(check)}{own.get('component')} ({as_float(own.get('value')):.6g}) is "
            f"{as_float(own.get('step')):.3g}: by the gradient it moves the objective by {percent(own.get('share'))} of it"
        )
    of = part(digits, "objective")
    if as_float(of.get("share") or 0.0) >= WORTH_SAYING:
        found.append(
            f"one step of the objective ({as_float(of.get('value')):.6g}) is {as_float(of.get('step')):.3g}, "
            f"{percent(of.get('share'))} of what a change of {_name(check)} by its own size does to it"
        )
    return found


def update_lost(check: Check) -> str:
    """Where the update after a right gradient left every value as it was, and one step of the parameter counts; else empty."""
    own, length = part(part(check, "digits"), "parameter"), part(check, "update").get("length")
    if length is None or as_float(length) != 0.0 or as_float(own.get("share") or 0.0) < COUNTS:
        return ""
    return (
        f"the update after iteration {check.get('iteration')} left every value of {_name(check)} as it was, although the gradient is "
        f"not zero: at {as_float(own.get('value')):.6g} neighbouring {own.get('dtype')} numbers are {as_float(own.get('step')):.3g} "
        "apart, and what is smaller is rounded away"
    )


def launch_sentence(row: Isolated) -> str:
    """What one step of a launch's large input does."""
    found = row.digits
    assert found is not None
    return (
        f"{row.file}:{row.line}: {row.kernel} reads {found.argument}, of up to {as_float(found.size):.4g}, where neighbouring "
        f"numbers are {as_float(found.step):.3g} apart: one such step changes what it writes, of the size "
        f"{as_float(found.result_size):.3g}, by {percent(found.share)}"
    )


def _name(check: Check) -> str:
    return str(check["parameter"].get("name") or "the parameter")


def _objective_place(check: Check) -> Place:
    return (check.get("horizon") or {}).get("to") or {}

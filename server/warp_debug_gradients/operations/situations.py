"""From a check's verdict to a cause, where no launch is to blame: the gradient is right, or nothing can be measured. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from warp_debug_gradients.operations import by_hand, explain
from warp_debug_gradients.operations.agreement import bound_in_words
from warp_debug_gradients.operations.digits import REPAIR, rounded_away, update_lost
from warp_debug_gradients.operations.line_search import Line, line_of, line_sentence
from warp_debug_gradients.operations.reported import reported_otherwise
from warp_debug_gradients.records import Check, DirectionRow, Place, Trace
from warp_debug_gradients.schemas import Cause, Isolated, ScriptError, as_float


@dataclass(frozen=True)
class Situation:
    """What the reason of an inconclusive check amounts to, and what helps."""

    code: str
    says: str
    repair: str
    confidence: Literal["likely", "possible"] = "likely"


# Reasons are those of probe/verdict.py.
SITUATIONS = {
    "not_reproducible": Situation(
        "stochastic_forward",
        "unperturbed evaluations give different objectives",
        "Draw the random numbers from a seed that is the same in every evaluation (or outside of the objective).",
    ),
    "not_repeated": Situation(
        "stochastic_forward",
        "the program takes other steps in another run: random draws, a clock, or files that it left behind",
        "Draw the random numbers from a fixed seed, and let nothing else change from run to run.",
        "possible",
    ),
    "quantised": Situation(
        "precision_floor",
        "the objective changes by less than its own last digits",
        "Compute the objective in float64, as a mean, or as the difference to a reference.",
    ),
    "kink": Situation(
        "nonsmooth_choice",
        "the one-sided derivatives differ at this very point",
        "Either subgradient is valid. Use a smooth form (or break the tie) if training stalls there.",
    ),
    "unresolved": Situation(
        "chaotic_horizon",
        "the objective is as rough at the finest steps that the parameter has as at any other, and the gradient predicts "
        "more there than the objective ever moves: right or not, it says nothing about any step that training takes",
        "Shorten the horizon, or use multiple shooting or a smoothed objective; check the gradient at a short horizon.",
    ),
    "unseeded": Situation(
        "seed_mismatch",
        "nothing seeds this backward pass",
        "Hand it the loss, or the gradient that the pass before left (a chain of tapes, a checkpoint).",
        "possible",
    ),
    "staircase": Situation(
        "piecewise_constant",
        "the objective is constant at small steps and slopes at large ones: a zero gradient is right",
        "Train through a surrogate (a smooth threshold, a straight-through estimator).",
    ),
}


CHAOTIC = Situation(
    "chaotic_horizon",
    "AD is the derivative at the finest steps only: the objective is far from linear at any step that training takes",
    "Shorten the horizon, or use multiple shooting or a smoothed objective: the gradient is right and of no use here.",
)
ON = 0.05  # of AD: differences that are no farther from it, nor less certain, have settled on it
FINER = 0.01  # of the step at which another direction is off
STEEP = 20.0  # the change that AD predicts at an ordinary step, in multiples of the whole objective


def situations(check: Check) -> list[Cause]:
    """What an inconclusive check says about the program, with the numbers."""
    found = SITUATIONS.get(check.get("reason") or "") or (CHAOTIC if is_chaotic(check) else None)
    if check["verdict"] != "inconclusive" or found is None:
        return []
    window = next((w for w in check.get("windows") or [] if w.get("file")), None)
    place: Place = window or (check.get("horizon") or {}).get("to") or {}
    return [
        Cause(
            code=found.code,
            confidence=found.confidence,
            file=place.get("file"),
            line=place.get("line"),
            variables=[n for n in [(check.get("objective") or {}).get("name")] if n],
            evidence=[found.says, *(_numbers(check))],
            repair=found.repair,
        )
    ]


def at_their_launches(situation: list[Cause], check: Check, isolated: Sequence[Isolated]) -> list[Cause]:
    """What an undecided check amounts to, placed at the launch that shows it by itself."""
    return rounded_away(_at_the_kink(_rounded_away(situation, check, isolated), isolated), check, isolated)


def _at_the_kink(situation: list[Cause], isolated: Sequence[Isolated]) -> list[Cause]:
    """The one launch on the tape whose own one-sided derivatives differ is where the choice is made."""
    kinks = {(row.file, row.line): row for row in isolated if row.reason == "kink"}
    if len(kinks) == 1:
        ((file, line), row) = next(iter(kinks.items()))
        for cause in situation:
            if cause.code == "nonsmooth_choice":
                cause.file, cause.line, cause.kernel = file, line, row.kernel
                cause.evidence.append(f"{file}:{line}: the one-sided derivatives of {row.kernel} by itself differ, too")
    return situation


def _rounded_away(situation: list[Cause], check: Check, isolated: Sequence[Isolated]) -> list[Cause]:
    """Stairs that AD does not see, and a launch whose outputs are too coarse for what it passes on: their digits are the stairs."""
    directions = (check.get("gradient") or {}).get("directions") or []
    coarse = next((row for row in isolated if row.blamed and row.reason == "quantised"), None)
    seen = bool(directions) and all(as_float(d.get("autodiff")) for d in directions)
    if coarse is None or not seen or [cause.code for cause in situation] != ["piecewise_constant"]:
        return situation
    text = str(check.get("message") or "").split(";")[0]
    return [
        Cause(
            code="precision_floor",
            confidence="likely",
            file=coarse.file,
            line=coarse.line,
            kernel=coarse.kernel,
            variables=situation[0].variables,
            evidence=[
                f"the objective does not follow the parameter, although AD does: {text}",
                f"{coarse.file}:{coarse.line}: what {coarse.kernel} writes moves by less than its own last digits: something "
                "small is added to something large, and is rounded away",
            ],
            repair="Take the large part out before the small one is added (work with the difference to a reference), or use "
            "float64 there.",
        )
    ]


def is_chaotic(check: Check) -> bool:
    """Differences agree with AD at fine steps, and AD predicts absurd changes at the steps that differ.

    Both along one direction (the check says that it depends on the scale), or the one along one and the other along another.
    """
    directions = (check.get("gradient") or {}).get("directions") or []
    value = as_float((check.get("objective") or {}).get("value"))
    changes = [abs(as_float(d.get("autodiff")) * as_float(d.get("step"))) for d in directions]
    finite = [c for c in changes if math.isfinite(c)]
    split = check.get("reason") == "scale_dependent" or (
        check.get("reason") == "directions_differ" and right_at_finer_steps(directions)
    )
    return split and bool(finite) and max(finite) > STEEP * abs(value) > 0.0


def right_at_finer_steps(directions: Sequence[DirectionRow]) -> bool:
    """Whether differences settle on AD along a direction whose step is far finer than that of one where they do not."""
    off = [as_float(d.get("step")) for d in directions if d.get("verdict") == "disagree"]
    on = [
        as_float(d.get("step"))
        for d in directions
        if abs(as_float(d.get("autodiff")) - as_float(d.get("finite_difference")))
        <= ON * abs(as_float(d.get("autodiff")))
        and abs(as_float(d.get("error"))) <= ON * abs(as_float(d.get("autodiff")))
    ]
    return bool(on and off) and max(on) < FINER * min(off)


def _numbers(check: Check) -> list[str]:
    """What was measured, in the check's own words and numbers."""
    said = str(check.get("message") or "").strip().rstrip(".")
    values = [as_float(v) for v in (check.get("repeats") or {}).get("values") or []]
    spread = max(values) - min(values) if values and all(map(math.isfinite, values)) else 0.0
    repeats = [f"{len(values)} repeats of the objective spread over {spread:.3g}"] if spread else []
    return ([said] if said else []) + repeats


def right(checks: list[Check], trace: Trace) -> Cause:
    """Every check agrees: the gradient is right, and the complaint has another reason."""
    check = checks[0]
    gradient = check.get("gradient") or {}
    name = (check.get("parameter") or {}).get("name") or "the parameter"
    full = all((c.get("horizon") or {}).get("full", True) for c in checks)
    iterations = ", ".join(str(c.get("iteration")) for c in checks)
    evidence = [
        f"AD = {as_float(gradient.get('autodiff')):.6g}, FD = {as_float(gradient.get('finite_difference')):.6g} "
        f"± {as_float(gradient.get('error')):.2g} over {'the full' if full else 'PART of the'} horizon (iterations {iterations})"
        f"{bound_in_words(gradient)}"
    ]
    if not full:
        evidence.append(explain.SEGMENT)
    lost = next((text for c in checks if (text := explain.wiped(c))), "")
    if lost:
        evidence.append(lost)
    repair = "The gradient needs no repair. Look at the learning rate, the loss's scale, and the model itself."
    lines = [(c.get("iteration"), line_of(c)) for c in checks]
    # Seeds that change with the outputs are no objective that a step could lower.
    measured = [] if any(map(by_hand.is_seeded, checks)) else [(k, line) for k, line in lines if line is not None]
    if measured:
        evidence += [line_sentence(line, k) for k, line in measured[:2]]
        repair = _advice(measured[0][1]) or repair
    unread = explain.off_the_tape(checks).strip()
    if unread:
        evidence.append(unread.removeprefix("But ").rstrip("."))
        repair = (
            "The gradient needs no repair; the update does: it has to change the array that the forward pass reads."
        )
    given = by_hand.taken_as_given(checks)
    if given:
        evidence.append("it is the derivative of the seeded outputs: the seeds are taken as given")
    elif by_hand.in_words(checks):
        evidence.append(by_hand.in_words(checks))
    other = explain.other_reason(trace).strip()
    if other:
        evidence.append(other.rstrip("."))
    reported = reported_otherwise(trace)
    if reported:
        evidence.append(reported)
        repair = (
            "The gradient of what is handed to backward needs no repair. If the printed number is what should fall, everything "
            "that it is made of has to be on the tape."
        )
    rounded = next((text for c in checks if (text := update_lost(c))), "")
    if rounded:
        evidence.append(rounded)
        repair = f"The gradient needs no repair; the update is rounded away. {REPAIR}"
    place = (check.get("horizon") or {}).get("to") or {}
    return Cause(
        code="gradients_correct",
        confidence="possible" if lost or not full else "likely" if given else "proven",
        file=place.get("file"),
        line=place.get("line"),
        variables=[name],
        evidence=evidence,
        repair=repair,
    )


def _advice(line: Line) -> str | None:
    """What the measured curve along the gradient says about the step size."""
    if line.taken is None or line.best is None:
        return None
    if line.limit is not None and line.taken > line.limit:
        return (
            f"The gradient needs no repair. The update's effective learning rate, {line.taken:.2g}, is beyond what the "
            f"objective's curvature along the gradient allows ({line.limit:.2g}): lower it to about {line.best:.2g}."
        )
    if line.taken > 2 * line.best:
        return (
            f"The gradient needs no repair. The update's step is {line.taken / line.best:.3g} times the one at which the "
            "loss is lowest along the gradient: lower the learning rate."
        )
    if line.taken < line.best / 20:
        return (
            f"The gradient needs no repair. The update's step is {line.taken / line.best:.2g} of the one at which the "
            "loss is lowest along the gradient: raise the learning rate."
        )
    return None


def blocked(error: ScriptError) -> Cause:
    """The program does not run. Its place is the line to be changed, where that is known to be another than the failing one."""
    said = error.message.strip().splitlines()[:1]
    evidence = [f"{error.type}: {said[0] if said else ''}"]
    place = error.named or error
    if error.named is not None and error.line is not None:
        evidence.append(f"it fails at {error.file}:{error.line}")
    return Cause(
        code="does_not_run",
        confidence="proven",
        file=place.file,
        line=place.line,
        function=None if error.named else error.function,
        kernel=error.kernel,
        evidence=evidence,
        repair=error.advice,
    )

"""Whether two runs measured the same program, the gradient aside. Pure: recorded numbers in, changes out.

A repair changes the gradient (AD). It cannot change the derivative by differences (FD) at the same point along the
same directions, since no adjoint takes part in it. So FD is the witness: where it has moved, the program computes
something else now, and an agreement says nothing about the old fault.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from warp_debug_gradients.operations.iterations import iteration_of
from warp_debug_gradients.records import Check, Iteration, Trace, part, parts
from warp_debug_gradients.schemas import ForwardChange, as_float

ROUNDING = 1e-3  # FD may move by this part: other order of summation, other step
VALUE_ROUNDING = 1e-5  # so may the objective's own value
SLIGHT = 0.01  # beyond rounding, but no reason to distrust an agreement, where the fault was much larger:
SLIGHT_OF_FAULT = 0.1
RACING = 0.1  # what FD may move by where the old program's values depended on the order of its threads
REPRODUCIBLE = 1e-4  # two runs of the same files differ by less, or else they draw unseeded random numbers
ORDER = ("training", "parameter", "start", "derivative", "objective", "horizon", "launches", "kernels")  # how telling
RANDOM_MULTIPLE = 5.0  # what a difference may be of that between two runs of the same files


@dataclass(frozen=True)
class Side:
    """What one run recorded."""

    trace: Trace
    checks: list[Check]

    def check(self, iteration: int, name: str) -> Check | None:
        """The check of one parameter in one iteration."""
        found = (c for c in self.checks if c["iteration"] == iteration and c["parameter"]["name"] == name)
        return next(found, None)

    def iteration(self, index: int) -> Iteration:
        """An iteration of the trace."""
        return iteration_of(self.trace, index)

    def run_noise(self) -> float:
        """How much the same numbers differed between this side's two runs of the same files (trace and check)."""
        differences: list[float] = []
        for index in sorted({c["iteration"] for c in self.checks}):
            checks = [c for c in self.checks if c["iteration"] == index]
            item = self.iteration(index)
            known: list[float] = []
            objective = part(checks[0], "objective")
            losses = [as_float(x) for x in parts(item, "losses") if x is not None]
            if losses and objective.get("kind") == "loss":
                known.append(relative(math.fsum(losses), as_float(objective.get("value"))))
            norms = [as_float(part(c, "consumed").get("norm")) for c in checks]
            if item.get("gradient_norm") is not None and len(norms) == len(item.get("parameter_keys") or norms):
                known.append(relative(as_float(item.get("gradient_norm")), math.sqrt(math.fsum(n * n for n in norms))))
            finite = [x for x in known if math.isfinite(x)]
            if finite:
                differences.append(min(finite))  # the smaller one: the two need not mean the same in every program
        return max(differences, default=0.0)


def relative(before: float, after: float) -> float:
    """|after - before| / |before|."""
    if before == after:
        return 0.0
    return abs(after - before) / abs(before) if before else math.inf


def directions(check: Check) -> dict[str, tuple[float, float, float]]:
    """label -> (AD, FD, error of FD), of random directions (the same in every run) only."""
    return {
        d["label"]: (as_float(d.get("autodiff")), as_float(d.get("finite_difference")), as_float(d.get("error")))
        for d in parts(part(check, "gradient"), "directions")
        if str(d.get("label")).startswith("random")
    }


def whole_error(check: Check) -> float:
    """|AD - FD| / |FD| over the directions together; infinite where AD is not finite."""
    rows = [row for row in directions(check).values() if math.isfinite(row[1])]
    if not rows:
        return math.nan
    ad, fd = np.array([r[0] for r in rows]), np.array([r[1] for r in rows])
    if not np.all(np.isfinite(ad)):
        return math.inf
    size = float(np.linalg.norm(fd))
    off = float(np.linalg.norm(ad - fd))
    return off / size if size else (math.inf if off else 0.0)


def same_point(before: Check, after: Check) -> bool | None:
    """Whether both checks stand at the same parameter values; None where that was not recorded."""
    one, other = before.get("start"), after.get("start")
    return one["digest"] == other["digest"] if one and other else None


def derivative_moved(before: Check, after: Check) -> tuple[float, float] | None:
    """(how far FD moved, how far it may by its own error), both relative; None where there is nothing to compare."""
    b, a = directions(before), directions(after)
    labels = [n for n in b if n in a and math.isfinite(b[n][1]) and math.isfinite(a[n][1])]
    if not labels:
        return None
    old, new = np.array([b[n][1] for n in labels]), np.array([a[n][1] for n in labels])
    errors = np.array([b[n][2] + a[n][2] for n in labels])
    errors = errors[np.isfinite(errors)]
    size, moved = float(np.linalg.norm(old)), float(np.linalg.norm(new - old))
    own = 3.0 * float(np.linalg.norm(errors))
    if size == 0.0:
        return (0.0, 0.0) if moved <= own else (math.inf, 0.0)
    return moved / size, own / size


def ended_race(before: Side, after: Side) -> str | None:
    """The launch whose threads read what others of them wrote, and do so no more: that changes the forward values."""
    now = {race.get("kernel") for race in parts(part(after.trace, "structure"), "races")}
    gone = (r for r in parts(part(before.trace, "structure"), "races") if r.get("kernel") not in now)
    return next((f"{race.get('kernel')} (launched at {race.get('file')}:{race.get('line')})" for race in gone), None)


def forward_changes(before: Side, after: Side, pairs: list[tuple[Check, Check]]) -> list[ForwardChange]:
    """What of the program itself is not as it was; the changes that mask come first."""
    noise = max(before.run_noise(), after.run_noise())
    fault = max((whole_error(b) for b, _ in pairs if b["verdict"] == "disagree"), default=math.inf)
    slight = min(SLIGHT, SLIGHT_OF_FAULT * fault) if math.isfinite(fault) else SLIGHT
    slight = RACING if ended_race(before, after) else slight
    found: list[ForwardChange] = []
    witnesses = 0
    # A right gradient leads another parameter elsewhere: from then on this one's derivative is another, too.
    elsewhere = {b["iteration"] for b, a in pairs if b["iteration"] > 0 and same_point(b, a) is False}
    for b, a in pairs:
        if (b["parameter"].get("shape"), b["parameter"].get("dtype")) != (
            a["parameter"].get("shape"),
            a["parameter"].get("dtype"),
        ):
            found.append(_shape(b, a))
            witnesses += 1
            continue
        point = same_point(b, a)
        if point is False and b["iteration"] == 0 and noise <= REPRODUCIBLE:
            found.append(_start(b, a))
            witnesses += 1
        if point is False or b["iteration"] in elsewhere:
            continue
        moved = derivative_moved(b, a)
        if moved is not None and moved[1] <= SLIGHT + noise:
            witnesses += 1
            if moved[0] > moved[1] + max(ROUNDING, RANDOM_MULTIPLE * noise):
                found.append(_derivative(b, a, moved[0], masks=moved[0] > slight + RANDOM_MULTIPLE * noise))
        value = relative(_value(b), _value(a))
        if value > max(VALUE_ROUNDING, RANDOM_MULTIPLE * noise) or math.isnan(_value(b)) != math.isnan(_value(a)):
            settled = moved is not None and moved[1] <= SLIGHT + noise
            found.append(_objective(b, a, value, masks=not settled and value > slight + RANDOM_MULTIPLE * noise))
    if not witnesses:
        found += _first_losses(before, after, noise, slight)
    found += _frozen(before, after, pairs)
    found += _structure(before, after, pairs)
    return sorted(_distinct(found), key=lambda c: (not c.masks, ORDER.index(c.what)))


def witnessed(before: Side, after: Side, pairs: list[tuple[Check, Check]]) -> str | None:
    """Why the program could *not* be shown to be the same one, where it could not."""
    noise = max(before.run_noise(), after.run_noise())
    comparable = [(b, a) for b, a in pairs if same_point(b, a) is not False and derivative_moved(b, a)]
    if comparable:
        return None
    if noise > REPRODUCIBLE:
        return (
            f"the program draws unseeded random numbers (two runs of the same files differ by {100 * noise:.2g}%): that it "
            "still computes the same objective was judged by the size of its losses only"
        )
    return (
        "the parameter's values differ from the baseline's (the training took another path), so that the derivative by "
        "differences could not be compared; the losses of the first iteration were"
    )


def _value(check: Check) -> float:
    return as_float(part(check, "objective").get("value"))


def _where(check: Check) -> str:
    return f"in iteration {check['iteration']}"


def _shape(b: Check, a: Check) -> ForwardChange:
    old, new = (f"{c['parameter'].get('shape')} {c['parameter'].get('dtype')}" for c in (b, a))
    name = a["parameter"]["name"]
    return ForwardChange(
        what="parameter", before=old, after=new, masks=True, message=f"the parameter {name} was {old} and is {new}"
    )


def _start(b: Check, a: Check) -> ForwardChange:
    old, new = (", ".join(f"{as_float(x):.6g}" for x in parts(part(c, "start"), "first")) for c in (b, a))
    name = a["parameter"]["name"]
    text = f"the initial values of {name} are others: {old} before, {new} now (RMS {_rms(b)} and {_rms(a)})"
    return ForwardChange(what="start", before=old, after=new, masks=True, message=text)


def _rms(check: Check) -> str:
    return f"{as_float(part(check, 'start').get('rms')):.6g}"


def _derivative(b: Check, a: Check, moved: float, masks: bool) -> ForwardChange:
    old, new = directions(b), directions(a)
    label = max(
        (n for n in old if n in new),
        key=lambda n: abs(new[n][1] - old[n][1]) if math.isfinite(new[n][1] - old[n][1]) else 0.0,
    )
    one, other = old[label][1], new[label][1]
    text = (
        f"the derivative of the objective by differences, in which no gradient takes part, moved by {100 * moved:.3g}% "
        f"{_where(a)} (along {label}: FD = {one:.6g} before, {other:.6g} now)"
    )
    if not any(row[1] for row in new.values()):
        text += ": the objective no longer depends on the parameter"
    elif one and abs(other / one - 1) > SLIGHT and _one_factor(old, new):
        text += f": it is scaled by {other / one:.4g}"
    return ForwardChange(
        what="derivative", before=f"{one:.6g}", after=f"{other:.6g}", change=moved, masks=masks, message=text
    )


def _one_factor(old: dict[str, tuple[float, float, float]], new: dict[str, tuple[float, float, float]]) -> bool:
    return len({round(new[n][1] / old[n][1], 2) for n in old if n in new and old[n][1]}) == 1


def _objective(b: Check, a: Check, change: float, masks: bool) -> ForwardChange:
    one, other = _value(b), _value(a)
    size = f" (by {100 * change:.3g}%)" if math.isfinite(change) else ""
    text = f"the objective's value at the same parameter values changed from {one:.6g} to {other:.6g}{size} {_where(a)}"
    return ForwardChange(
        what="objective", before=f"{one:.6g}", after=f"{other:.6g}", change=change, masks=masks, message=text
    )


def _first_losses(before: Side, after: Side, noise: float, slight: float) -> list[ForwardChange]:
    """The losses of the first iteration, where nothing better can be compared."""
    old, new = (
        math.fsum(as_float(x) for x in parts(s.iteration(0), "losses") if x is not None) for s in (before, after)
    )
    change = relative(old, new)
    if change <= max(VALUE_ROUNDING, RANDOM_MULTIPLE * noise):
        return []
    text = f"the loss of the first iteration changed from {old:.6g} to {new:.6g}"
    masks = change > slight + RANDOM_MULTIPLE * noise
    return [
        ForwardChange(
            what="objective", before=f"{old:.6g}", after=f"{new:.6g}", change=change, masks=masks, message=text
        )
    ]


def _frozen(before: Side, after: Side, pairs: list[tuple[Check, Check]]) -> list[ForwardChange]:
    """Parameters that training moved before, and does not move now."""
    found: list[ForwardChange] = []
    old, new = (len(parts(s.trace, "iterations")) for s in (before, after))
    calls = [s.trace.get("backward_calls") or 0 for s in (before, after)]
    if old > 1 and new == 1 and calls[1] > 1 and after.trace.get("status") == "completed":
        text = (
            f"nothing is updated any more between the {calls[1]} backward calls, which therefore count as one iteration "
            f"(before: {old} iterations, {calls[0]} calls)"
        )
        return [ForwardChange(what="training", before="updated", after="not updated", masks=True, message=text)]
    for name in dict.fromkeys(a["parameter"]["name"] for _, a in pairs):
        then = [b for b, a in pairs if a["parameter"]["name"] == name]
        now = [c for c in after.checks if c["parameter"]["name"] == name]
        moved_then = _moves(then) if len(then) > 1 else _varies(before)
        used = any(as_float(part(c, "consumed").get("norm")) > 0.0 for c in now)  # a zero gradient moves nothing
        if used and moved_then and _moves(now) is False and not _varies(after):
            text = f"{name} keeps its values from iteration to iteration now: it is not trained any more"
            found.append(
                ForwardChange(what="training", before="updated", after="not updated", masks=True, message=text)
            )
    return found


def _moves(checks: list[Check]) -> bool | None:
    digests = [start["digest"] for c in checks if (start := c.get("start"))]
    return len(set(digests)) > 1 if len(digests) > 1 else None


def _varies(side: Side) -> bool:
    """Whether the losses differ between iterations."""
    losses = [tuple(parts(i, "losses")) for i in parts(side.trace, "iterations")]
    return len(set(map(str, losses))) > 1


def _structure(before: Side, after: Side, pairs: list[tuple[Check, Check]]) -> list[ForwardChange]:
    """Windows, tape operations, launches, kernels: a repair may change them, so they only tell what happened."""
    found: list[ForwardChange] = []

    def tell(what: str, old: Any, new: Any, unit: str) -> None:
        if old is not None and new is not None and old != new:
            text = f"{unit}: {old} before, {new} now"
            found.append(ForwardChange(what=what, before=str(old), after=str(new), masks=False, message=text))

    if pairs:
        b, a = (part(pairs[0][k], "horizon") for k in (0, 1))
        tell("horizon", b.get("windows"), a.get("windows"), "backward calls an iteration")
        tell("horizon", b.get("ops"), a.get("ops"), "tape operations an iteration")
    one, other = part(before.trace, "structure"), part(after.trace, "structure")
    tell("launches", one.get("launches_per_iteration"), other.get("launches_per_iteration"), "launches an iteration")
    old, new = set(part(one, "kernels")), set(part(other, "kernels"))
    if old != new:
        gone, come = ", ".join(sorted(old - new)) or "none", ", ".join(sorted(new - old)) or "none"
        text = f"kernels on the tape that are gone: {gone}; new: {come}"
        found.append(
            ForwardChange(
                what="kernels", before=", ".join(sorted(old)), after=", ".join(sorted(new)), masks=False, message=text
            )
        )
    return found


def _distinct(changes: Iterable[ForwardChange]) -> list[ForwardChange]:
    """The first one of each kind that masks, and of each kind that does not."""
    seen: dict[Any, ForwardChange] = {}
    for change in changes:
        key = (change.what, change.message.split(":")[0]) if change.what == "horizon" else change.what
        if key not in seen or (change.masks and not seen[key].masks):
            seen[key] = change
    return list(seen.values())

"""The check before and after an edit: is the fault gone? Pure: two sides' recorded numbers in, an outcome out."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from warp_debug_gradients.operations.forward_change import (
    Side,
    directions,
    ended_race,
    forward_changes,
    same_point,
    whole_error,
    witnessed,
)
from warp_debug_gradients.records import Check, part, parts
from warp_debug_gradients.schemas import (
    ComparedCheck,
    ComparedDirection,
    ForwardChange,
    Horizon,
    Measured,
    Outcome,
    as_float,
)

# |AD - FD| over all directions together, now against before: the differences repeat to many digits at the same point.
IMPROVED, WORSE = 0.9, 1.1
IMPROVED_ELSEWHERE, WORSE_ELSEWHERE = 0.7, 1.5  # where the training took another path

Pair = tuple[Check, Check]


@dataclass
class Comparison:
    """What the two sides say together."""

    outcome: Outcome
    reason: str | None
    message: str
    pairs: list[Pair]
    changes: list[ForwardChange] = field(default_factory=list[ForwardChange])
    blind_spots: list[str] = field(default_factory=list[str])
    wrong_now: Check | None = None  # the check that disagrees now, for the ledger

    @property
    def masking(self) -> list[ForwardChange]:
        """The changes by which an agreement now proves nothing."""
        return [c for c in self.changes if c.masks]


def compare(before: Side, after: Side, names: dict[str, str], *, changed: bool) -> Comparison:
    """The outcome. `names`: parameter before -> parameter now; `changed`: whether any loaded file was edited."""
    pairs = [
        (b, a)
        for b in before.checks
        if (a := after.check(b["iteration"], names.get(b["parameter"]["name"], ""))) is not None
    ]
    headline = next(c for c in before.checks if c["verdict"] == "disagree")
    now = after.check(headline["iteration"], names.get(headline["parameter"]["name"], ""))
    if now is None:
        text = f"The check of {headline['parameter']['name']} in iteration {headline['iteration']} was not repeated."
        return Comparison("inconclusive", "not_measured", text, pairs)
    pairs.sort(key=lambda p: p[0] is not headline)
    result = Comparison("inconclusive", None, "", pairs, forward_changes(before, after, pairs))
    unwitnessed = witnessed(before, after, pairs)
    if unwitnessed:
        result.blind_spots.append(unwitnessed)
    _decide(result, headline, now, after, changed)
    moved = next((c for c in result.changes if c.what == "derivative" and not c.masks), None)
    racing = ended_race(before, after) if result.outcome == "fixed" and moved else None
    if racing:
        result.message += (
            f" That is what a repair of {racing} does: its threads read what others of them wrote, so that their order "
            "decided the forward values."
        )
        result.blind_spots.append(
            "whether the objective is meant as it is now: its forward values had to change, so that the derivative by "
            "differences is no witness of a program left as it was"
        )
    return result


def _decide(result: Comparison, headline: Check, now: Check, after: Side, changed: bool) -> None:
    seen_before = {(a["iteration"], a["parameter"]["name"]): b for b, a in result.pairs}
    wrong = [c for c in after.checks if c["verdict"] == "disagree"]
    broken = [
        c
        for c in wrong
        if (b := seen_before.get((c["iteration"], c["parameter"]["name"]))) is not None and b["verdict"] == "agree"
    ]
    error = f"{_percent(whole_error(headline))} before, {_percent(whole_error(now))} now"
    where = f"{now['parameter']['name']} in iteration {now['iteration']}"
    also = f" The program changed, too: {result.masking[0].message}." if result.masking else ""
    if now["verdict"] == "disagree":
        result.wrong_now = now
        result.outcome = _by_size(headline, now) if changed and not result.masking else "not_fixed"
        words = {"not_fixed": "Not fixed", "improved_but_wrong": "Improved, but still wrong", "regressed": "Worse"}
        result.message = (
            f"{words[result.outcome]}: the gradient of {where} still disagrees; its error was {error}.{also}"
        )
    elif broken:
        result.outcome, result.wrong_now = "regressed", broken[0]
        result.message = (
            f"Regressed: the gradient of {_name(broken[0])} was right before the edit and is wrong now, though that of "
            f"{where} no longer disagrees ({error}).{also}"
        )
    elif wrong:  # an improvement counts only where the program is the same
        result.outcome, result.wrong_now = "not_fixed" if result.masking else "improved_but_wrong", wrong[0]
        word = "Not fixed" if result.masking else "Improved, but still wrong"
        result.message = (
            f"{word}: the gradient of {where} no longer disagrees ({error}), but that of {_name(wrong[0])} does.{also}"
        )
    elif result.masking:
        result.outcome, result.reason = "masked", f"{result.masking[0].what}_changed"
        agrees = "The check agrees now" if now["verdict"] == "agree" else "The check does not disagree any more"
        others = "".join(f" Also: {c.message}." for c in result.masking[1:3])
        result.message = (
            f"{agrees}, but that proves no repair: {result.masking[0].message}.{others} "
            "Undo that change and verify again; if it is meant, the new program needs a check of its own."
        )
    elif now["verdict"] == "inconclusive":
        result.outcome, result.reason = "inconclusive", now.get("reason")
        said = str(now.get("message") or "").rstrip(".")
        result.message = f"Not decided: the check of {where} disagreed before and is inconclusive now: {said}."
    elif not changed and not result.changes:
        result.outcome, result.reason = "inconclusive", "nothing_changed"
        result.message = (
            f"The gradient of {where} agrees now ({error}), but no Python file that the program loads has changed. "
            "Something else did: data, the environment, or chance. That is no proven repair."
        )
    else:
        result.outcome = "fixed"
        result.message = f"Fixed: the gradient of {where} agrees; its error was {error}.{_later(result, now, after)}"
        slight = [c.message for c in result.changes if c.what in ("objective", "derivative", "start")]
        if slight:
            result.message += f" The forward values changed: {slight[0]}."
        elif not result.blind_spots:
            result.message += " The derivative by differences is what it was: the program computes the same objective."


def _later(result: Comparison, now: Check, after: Side) -> str:
    """What the check of a later iteration says; where there is none, that is a blind spot."""
    later = [
        c
        for c in after.checks
        if c["iteration"] > now["iteration"] and c["parameter"]["name"] == now["parameter"]["name"]
    ]
    agree = [c for c in later if c["verdict"] == "agree"]
    for check in later:
        if check["verdict"] == "inconclusive":
            said = str(check.get("message") or check.get("reason")).rstrip(".")
            result.blind_spots.append(f"iteration {check['iteration']}, which is not decided now: {said}")
    if agree:
        return f" It agrees in iteration {agree[-1]['iteration']}, too."
    if not later:
        result.blind_spots.append("later iterations: the watched run has none")
    return ""


def _by_size(before: Check, after: Check) -> Outcome:
    """Which way the error went."""
    old, new = whole_error(before), whole_error(after)
    if old == new or math.isnan(old) or math.isnan(new):
        return "not_fixed"
    if math.isinf(old) or math.isinf(new):
        return "improved_but_wrong" if math.isinf(old) else "regressed"
    less, more = (IMPROVED_ELSEWHERE, WORSE_ELSEWHERE) if same_point(before, after) is False else (IMPROVED, WORSE)
    return "improved_but_wrong" if new < less * old else "regressed" if new > more * old else "not_fixed"


def worst_direction(check: Check) -> str | None:
    """The direction along which AD and FD are furthest apart: shown for both sides."""
    rows = directions(check)
    off = {n: abs(ad - fd) if math.isfinite(ad) else math.inf for n, (ad, fd, _) in rows.items() if math.isfinite(fd)}
    return max(off, key=lambda n: off[n], default=None)


def measured(check: Check, label: str | None) -> Measured:
    """One side's check as it stands in the result, with the numbers of one direction."""
    gradient, horizon = part(check, "gradient"), part(check, "horizon")
    gradient = next((d for d in parts(gradient, "directions") if d.get("label") == label), gradient)
    ad, fd = as_float(gradient.get("autodiff")), as_float(gradient.get("finite_difference"))
    both = gradient.get("autodiff") is not None and gradient.get("finite_difference") is not None
    return Measured(
        **{k: gradient.get(k) for k in ("autodiff", "finite_difference", "error", "relative_error")},
        direction=label,
        verdict=check["verdict"],
        reason=check.get("reason"),
        parameter=check["parameter"]["name"],
        iteration=check["iteration"],
        ratio=(ad / fd if fd else None) if both else None,
        whole_error=whole_error(check),
        objective=part(check, "objective").get("value"),
        horizon=Horizon.model_validate(
            {**horizon, "full": horizon.get("full", True), "start": horizon.get("from"), "end": horizon.get("to")}
        ),
        signature=part(check, "signature").get("message") or None,
    )


def compared_checks(before: Side, after: Side, pairs: list[Pair]) -> list[ComparedCheck]:
    """Every iteration and parameter, side by side."""
    rows: list[ComparedCheck] = []
    for a in after.checks:
        b = next((b for b, other in pairs if other is a), None)
        rows.append(
            ComparedCheck(
                iteration=a["iteration"],
                parameter=a["parameter"]["name"],
                before=b["verdict"] if b else None,
                after=a["verdict"],
                after_reason=a.get("reason"),
                same_point=same_point(b, a) if b else None,
                before_relative_error=whole_error(b) if b else None,
                after_relative_error=whole_error(a),
            )
        )
    return rows


def compared_directions(pair: Pair) -> list[ComparedDirection]:
    """The directions and elements that both sides measured, at the baseline's iteration."""
    before, after = (part(check, "gradient") for check in pair)
    rows: list[ComparedDirection] = []
    for kind, label in (("directions", "label"), ("elements", "component")):
        old = {row.get(label): row for row in parts(before, kind)}
        for row in parts(after, kind):
            b = old.get(row.get(label))
            if b is not None:
                sides = {
                    f"{side}_{n}": r.get(n)
                    for side, r in (("before", b), ("after", row))
                    for n in ("autodiff", "finite_difference", "error")
                }
                rows.append(ComparedDirection(label=str(row.get(label)), iteration=pair[1]["iteration"], **sides))
    return rows


def _name(check: Check) -> str:
    return f"{check['parameter']['name']} in iteration {check['iteration']}"


def _percent(value: float) -> str:
    return (
        f"{100 * value:.3g}%" if math.isfinite(value) else ("not a finite number" if math.isinf(value) else "unknown")
    )

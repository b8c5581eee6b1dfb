"""Measured causes and static leads together: a lead supports a cause, or stands in where nothing was located. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from warp_debug_gradients.patterns import STRONG, Hit
from warp_debug_gradients.records import Check
from warp_debug_gradients.schemas import Cause, Isolated

UNEXPLAINED = "warp_defect"  # what a jump is called whose kernel shows no known construct
MOST = 3
STEPS = "piecewise_constant"
ELSEWHERE = {
    "stale_gradient",
    "backward_disabled",
}  # measured where they do harm; what should zero, or disables, is elsewhere
IN_KERNEL = "the error comes from a launch of this kernel"
NOT_LOCATED = "no measurement located the error"


def with_leads(causes: list[Cause], hits: Sequence[Hit], wrong: bool) -> list[Cause]:
    """The causes, supported by what the source shows; leads as possible causes where nothing else is known.

    wrong: the check disagrees. Otherwise a lead accuses nobody.
    """
    strong = [h for h in hits if h.likelihood == STRONG]
    for cause in causes:
        support = next((h for h in strong if _same(cause, h)), None)
        if support is not None:
            cause.evidence.append(f"the source shows it: {support.file}:{support.line}: {support.construct}")
            if cause.code in ELSEWHERE and (cause.file, cause.line) != (support.file, support.line):
                harm = f"{cause.file}:{cause.line}"
                if cause.file and not any(harm in sentence for sentence in cause.evidence):
                    cause.evidence.append(f"it was measured at {harm}")
                cause.file, cause.line = support.file, support.line
    if not wrong:
        return causes
    if not causes or all(c.code == UNEXPLAINED and c.confidence == "possible" for c in causes):
        kernels = {c.kernel for c in causes if c.kernel}
        near = [h for h in strong if h.function in kernels] if kernels else strong
        return [_cause(h, IN_KERNEL if kernels else NOT_LOCATED) for h in near[:MOST]] + causes
    return causes


def at_their_constructs(
    situation: list[Cause], check: Check, isolated: Sequence[Isolated], hits: Sequence[Hit]
) -> list[Cause]:
    """What an undecided check amounts to, placed at the construct that the source shows for it.

    A gradient of exactly zero whose differences do not settle, with a cast, floor or comparison on the way, is
    the derivative of a piecewise constant objective until a smoother measurement says otherwise. So is a part of the
    gradient, where one launch by itself hands nothing back and its outputs move in steps.
    """
    if check["verdict"] == "inconclusive" and not situation:
        return _stepped(check, isolated, [h for h in hits if h.code == STEPS and h.likelihood == STRONG])
    for cause in situation:
        lead = next((h for h in hits if h.code == cause.code), None)
        if lead is not None:
            cause.file, cause.line, cause.function = lead.file, lead.line, lead.function
            cause.evidence.append(f"the source shows it: {lead.file}:{lead.line}: {lead.construct}")
            if lead.likelihood == STRONG and cause.confidence == "possible":
                cause.confidence = "likely"  # what was measured, and what the source shows, agree
    return situation


def _stepped(check: Check, isolated: Sequence[Isolated], steps: Sequence[Hit]) -> list[Cause]:
    """The one construct that makes an objective, or a term of it, constant at small steps."""
    directions = (check.get("gradient") or {}).get("directions") or []
    if steps and directions and all(d.get("autodiff") == 0.0 for d in directions):
        cause = _cause(steps[0], "AD is exactly 0 along every direction, and the differences do not settle")
    else:
        flat = {row.kernel: row for row in isolated if row.reason == "staircase" and row.autodiff == 0.0}
        lead = next((h for h in steps if h.function in flat), None)
        if lead is None:
            return []
        row = flat[lead.function]
        cause = _cause(
            lead,
            f"{row.file}:{row.line}: {row.kernel} by itself hands back 0 for {row.argument}, and what it writes does not "
            "move at small steps of it but at large ones: whatever goes through it is missing from the gradient",
        )
    cause.confidence = "likely"
    return [cause]


def _same(cause: Cause, hit: Hit) -> bool:
    if cause.code != hit.code:
        return False
    handled = (
        cause.code == "stale_gradient" and not cause.variables
    )  # how a gradient is handled, not a buffer left over
    places = {(hit.file, hit.line), *((spot.file, spot.line) for spot in hit.related if not handled)}
    return (cause.file, cause.line) in places or (hit.variable is not None and hit.variable in cause.variables)


def _cause(hit: Hit, why: str) -> Cause:
    return Cause(
        code=hit.code,
        confidence="possible",
        file=hit.file,
        line=hit.line,
        function=hit.function,
        variables=[hit.variable] if hit.variable else [],
        evidence=[why, f"the source shows {hit.construct}: {hit.pattern.why}"],
        repair=hit.pattern.repair,
    )


def harmless(hits: Sequence[Hit]) -> list[str]:
    """Where the gradient agrees: strong leads are ruled out as causes."""
    strong = [h for h in hits if h.likelihood == STRONG]
    if not strong:
        return []
    places = ", ".join(f"{h.code} {h.file}:{h.line}" for h in strong[:MOST])
    more = f" and {len(strong) - MOST} more" if len(strong) > MOST else ""
    return [f"harm by known patterns in the source ({places}{more}): the gradient agrees nevertheless"]

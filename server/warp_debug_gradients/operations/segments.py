"""Checkpointing by hand: the backward calls that are not handed the adjoint of the state behind their segment. Pure."""

from __future__ import annotations

import math

from warp_debug_gradients.operations.iterations import iteration_of
from warp_debug_gradients.records import Check, Dropped, Numbers, Place, Trace
from warp_debug_gradients.schemas import Cause, as_float

MOST_LISTED = 3
OWN_SHARE = 0.1  # of the error: what the segments by themselves may be off by, if it comes in between them
IN_LOSS = "adjoint_in_loss"  # the reason of a check whose losses are no terms of one objective (probe/check.py)
REPAIR = (
    "Hand each segment the adjoint of the state with which the segment behind it begins: read it after that one's backward, and "
    "seed this one's last state with it (grads={end: adjoint}, or its .grad before the call)."
)


def dropped(check: Check, trace: Trace) -> list[Dropped]:
    """The adjoints that are not handed on in the iteration that the check is about."""
    return iteration_of(trace, check["iteration"]).get("dropped") or []


def cut_between(check: Check, trace: Trace) -> Place | None:
    """Where the chain is cut: the first backward call that is not handed what the call before left."""
    first = next((row for row in dropped(check, trace) if row.get("file")), None)
    return Place(file=first.get("file", ""), line=first.get("line", 0)) if first else None


def seeded_places(check: Check, trace: Trace, call: int | None) -> list[Place]:
    """Where the arrays were made whose gradient this backward call finds filled on purpose: the adjoint that is handed on."""
    rows = iteration_of(trace, check["iteration"]).get("handed") or []
    return [Place(file=row.get("file", ""), line=row.get("line", 0)) for row in rows if row.get("call") == call]


def is_cut_before(check: Check, trace: Trace, call: int | None) -> bool:
    """Whether an adjoint is dropped on the way to this backward call: what it is seeded with misses that, too."""
    return call is not None and any(row.get("call", call + 1) <= call for row in dropped(check, trace))


def dropped_adjoints(check: Check, trace: Trace, parted: bool) -> list[Cause]:
    """The cause, where the gradient is wrong. parted: whether each backward call is right by itself and the whole is not."""
    rows = dropped(check, trace)
    if not rows or not (check["verdict"] == "disagree" or check.get("reason") == IN_LOSS):
        return []
    place = cut_between(check, trace) or {}
    return [
        Cause(
            code="truncation",
            confidence="likely" if parted or comes_in_between(check) else "possible",
            file=place.get("file"),
            line=place.get("line"),
            variables=sorted({name for row in rows if (name := row.get("variable"))}),
            evidence=[_in_words(rows)],
            repair=REPAIR,
        )
    ]


def comes_in_between(check: Check) -> bool:
    """Whether all backward calls were measured, and by themselves are off by far less than the whole, their noise included."""
    windows = check.get("windows") or []
    if not windows or len(windows) < ((check.get("horizon") or {}).get("windows") or 1):
        return False
    directions = (check.get("gradient") or {}).get("directions") or []

    def off(row: Numbers) -> float:
        return abs(as_float(row.get("autodiff")) - as_float(row.get("finite_difference")))

    own = math.fsum(off(w) + abs(as_float(w.get("error"))) for w in windows)
    return bool(directions) and own <= OWN_SHARE * off(directions[0])


def _in_words(rows: list[Dropped]) -> str:
    calls = sorted({row.get("call", -1) for row in rows})
    norms = ", ".join(f"{as_float(row.get('norm')):.3g}" for row in rows[:MOST_LISTED])
    names = ", ".join(sorted({row.get("variable") or "an array" for row in rows}))
    listed = ", ".join(map(str, calls[:MOST_LISTED])) + (
        f" and {len(calls) - MOST_LISTED} more" * (len(calls) > MOST_LISTED)
    )
    return (
        f"the tape of backward call {listed} ends in the state with which the tape of the call before began ({names}), and the "
        f"adjoint that this call left there (norm {norms}) is not handed on: nothing seeds that end"
    )

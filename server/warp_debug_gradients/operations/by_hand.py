"""A right gradient of outputs that are seeded by hand: of which objective is it the gradient? Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from warp_debug_gradients.records import Check, HostValue, Trace
from warp_debug_gradients.schemas import Cause, as_float

PRINTED = 2e-3  # how far a printed number may be from the value: it is rounded
GIVEN = (
    "whether the seeds handed to backward are the derivative of what should fall: they are taken as given, and what was "
    "checked is the derivative of the seeded outputs"
)


def taken_as_given(checks: Sequence[Check]) -> bool:
    """Whether seeds that are no single number start backward, and nothing that was measured says what they are of."""
    return any(is_seeded(check) and not _matching(check) for check in checks)


def in_words(checks: Sequence[Check]) -> str:
    """What the measured numbers on the host say about the seed; '' where there is none."""
    for check in checks:
        row = _matching(check)
        if row is not None:
            factor = as_float(row.get("factor"))
            times = "" if math.isclose(factor, 1.0, rel_tol=0.02) else f"{factor:.4g} times "
            return f"the seeds fit {row['name']}: AD is {times}its derivative by differences"
    return ""


def mismatch(checks: Sequence[Check], trace: Trace) -> Cause | None:
    """The number that the script prints and whose derivative is another than the gradient; never more than possible."""
    for check in checks:
        rows = [] if _matching(check) else [r for r in check.get("by_hand") or [] if not r["proportional"]]
        row = next((r for r in rows if _is_printed(r, trace)), None)
        if row is None:
            continue
        place = (check.get("horizon") or {}).get("to") or {}
        return Cause(
            code="seed_mismatch",
            confidence="possible",
            file=place.get("file"),
            line=place.get("line"),
            variables=[row["name"]],
            evidence=[
                f"backward is seeded by hand, and {row['name']}, which the script prints, is not what the seed is the derivative "
                f"of: AD = {as_float(row.get('autodiff')):.6g}, FD of {row['name']} = "
                f"{as_float(row.get('finite_difference')):.6g} ± {as_float(row.get('error')):.2g} in iteration "
                f"{check['iteration']}, and no constant factor between them",
                "the gradient is that of the seeded outputs: if another objective is meant, this is none",
            ],
            repair=f"Seed backward with the derivative of {row['name']} (its weights and its mean, too), or compute it by a "
            "kernel on the tape and hand backward the result.",
        )
    return None


def other_objective(checks: Sequence[Check]) -> str | None:
    """The name of a number that follows the parameter and may be the objective that is meant."""
    rows = [row for check in checks for row in check.get("by_hand") or [] if not row["proportional"]]
    return rows[0]["name"] if rows and not any(map(_matching, checks)) else None


def is_seeded(check: Check) -> bool:
    """Whether the backward pass begins with seeds of the program's own that are no single number."""
    objective = check.get("objective") or {}
    return objective.get("kind") == "seeded" and objective.get("seed") is None


def _matching(check: Check) -> HostValue | None:
    return next((row for row in check.get("by_hand") or [] if row["proportional"]), None)


def _is_printed(row: HostValue, trace: Trace) -> bool:
    value = as_float(row.get("value"))
    printed = [p for values in (trace.get("printed") or {}).values() for p in values]
    return any(math.isclose(p, value, rel_tol=PRINTED) for p in printed if math.isfinite(p))

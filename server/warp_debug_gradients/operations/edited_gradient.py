"""A gradient that adds up over several backward calls and is changed in between: scaled, clipped, averaged too early. Pure."""

from __future__ import annotations

from warp_debug_gradients.operations.iterations import iteration_of
from warp_debug_gradients.records import Check, Trace
from warp_debug_gradients.schemas import Cause, as_float

NEAR = 0.02  # of the derivative: what the calls' own contributions may miss of it
WRONG = 5.0  # times as much must be missing in the gradient that was used


def added_right(check: Check) -> bool:
    """Whether what the iteration's backward calls add is the derivative, and the update uses another gradient."""
    whole, added = (check.get("gradient") or {}).get("directions") or [], check.get("contributed")
    if check["verdict"] != "disagree" or not whole or added is None:
        return False
    right, used = as_float(whole[0].get("finite_difference")), as_float(whole[0].get("autodiff"))
    missing = abs(as_float(added) - right)
    return missing <= NEAR * abs(right) and abs(used - right) >= WRONG * max(missing, 1e-300)


def swept_again(check: Check) -> list[Cause]:
    """The backward call that repeats the one before it: what it adds, or hands on to the next tape, counts twice."""
    again, whole = check.get("repeated") or [], (check.get("gradient") or {}).get("directions") or []
    if not again or not whole or check["verdict"] != "disagree":
        return []
    calls = (check.get("horizon") or {}).get("windows") or 1
    place, many = again[0], "a backward call" if len(again) == 1 else f"each of {len(again)} backward calls"
    return [
        Cause(
            code="double_count",
            confidence="likely",
            file=place.get("file"),
            line=place.get("line"),
            function=place.get("function"),
            evidence=[
                f"{many} of the iteration's {calls} repeats the one before it, over the same recording and from the same seed: "
                "nothing was computed in between, and the gradient adds up",
                f"without a repeated call the gradient is {as_float(check.get('contributed')):.6g}, FD is "
                f"{as_float(whole[0].get('finite_difference')):.6g}; the update uses {as_float(whole[0].get('autodiff')):.6g}",
            ],
            repair="Call backward once for a recording, or zero the gradients in between. A factor that is meant belongs into the "
            "seed or the learning rate.",
        )
    ]


def edited_between(check: Check, trace: Trace) -> list[Cause]:
    """The edit between two backward calls, where what the calls add by themselves is the whole derivative.

    It is then no adjoint that is wrong, nor a missing part: only what happens to the sum on its way to the update.
    """
    edit = iteration_of(trace, check["iteration"]).get("gradient_edited")
    whole, added = (check.get("gradient") or {}).get("directions") or [], check.get("contributed")
    calls = (check.get("horizon") or {}).get("windows") or 1
    if not edit or calls < 2 or not added_right(check):
        return []
    right, used = as_float(whole[0].get("finite_difference")), as_float(whole[0].get("autodiff"))
    scale = edit.get("scale")
    how = f"multiplied by {as_float(scale):.4g}" if scale is not None else "changed"
    return [
        Cause(
            code="stale_gradient",
            confidence="likely",
            file=edit.get("file"),
            line=edit.get("line"),
            function=edit.get("function"),
            evidence=[
                f"between two backward calls of the iteration the gradient is {how} ({edit.get('how') or 'by the host'}): "
                "what the first calls left is changed once more for each call that follows",
                f"what the {calls} backward calls add adds up to {as_float(added):.6g}, FD of their losses' sum is "
                f"{right:.6g}; the update uses {used:.6g}",
            ],
            repair="Change the gradient once, after the last backward call (or divide each loss before its backward call).",
        )
    ]

"""A right gradient of one summand of the number that the script reports. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from warp_debug_gradients.records import Check
from warp_debug_gradients.schemas import Cause, as_float


def part_seeded(checks: Sequence[Check]) -> Cause | None:
    """Backward begins at one summand of the sum that the host reads, and the sum's derivatives are others.

    Never more than possible: the rest may be a number to look at, or be handled elsewhere (a proximal step, weight decay).
    """
    check = next((c for c in checks if (c.get("reported") or {}).get("proportional") is False), None)
    found = check.get("reported") if check else None
    if check is None or found is None:
        return None
    loss = (check.get("objective") or {}).get("name") or "the loss"
    begins, summed, read = (
        (check.get("horizon") or {}).get("to") or {},
        found.get("summed") or {},
        found.get("read") or {},
    )
    name = found["name"]
    evidence = [
        f"backward begins at {loss}, which the host never reads; {name}, which it reads at {read.get('file')}:{read.get('line')}, "
        f"is {loss} and more (summed at {summed.get('file')}:{summed.get('line')})",
        f"{name} has other derivatives: FD of {name} = {as_float(found.get('finite_difference')):.6g} ± "
        f"{as_float(found.get('error')):.2g} where AD = {as_float(found.get('autodiff')):.6g} in iteration {check['iteration']}, and "
        "no constant factor between them over all that was measured",
        "where the rest is only to be looked at, or handled by the update itself (a proximal step, weight decay), this is as it "
        "should be",
    ]
    return Cause(
        code="seed_mismatch",
        confidence="possible",
        file=begins.get("file"),
        line=begins.get("line"),
        variables=[loss, name],
        evidence=evidence,
        repair=f"Call backward with {name}, if that is what should fall; the gradient of {loss} itself is right.",
    )

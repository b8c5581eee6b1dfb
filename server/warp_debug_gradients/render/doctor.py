"""What `doctor` found, one line each; what must be mended last, where it is seen."""

from __future__ import annotations

from warp_debug_gradients.schemas.doctor import Check, DoctorResult

MARKS = {"ok": "  ok     ", "warning": "  warning", "fault": "  FAULT  "}
ORDER = ("ok", "warning", "fault")


def render_doctor(result: DoctorResult) -> str:
    """The text for a person."""
    faults = sum(check.status == "fault" for check in result.checks)
    title = f"{faults} fault(s): nothing can be measured until they are mended" if faults else "Ready to measure"
    ordered = sorted(result.checks, key=lambda check: ORDER.index(check.status))
    return "\n".join([title, *(_line(check) for check in ordered)])


def _line(check: Check) -> str:
    mend = f"\n             -> {check.mend}" if check.mend else ""
    return f"{MARKS[check.status]} {check.name}: {check.found}{mend}"

"""One adjoint alone, as lines of text."""

from __future__ import annotations

from warp_debug_gradients.render.text import cut, pair, place, section
from warp_debug_gradients.schemas import BisectStepsResult, Isolated


def isolated_lines(result: BisectStepsResult, few: int) -> list[str]:
    """Each launch and custom gradient by itself, and what Warp's own per-kernel check says."""
    lines = section("One adjoint alone", cut([_row(r) for r in result.isolated], few))
    said = result.warp_gradcheck_tape
    if said is not None:
        word = {True: "passed", False: "failed", None: "no answer"}[said.passed]
        looked = f"; it looked at {said.looked_at}" if said.looked_at else ""
        skipped = f"; skipped: {', '.join(said.skipped)}" if said.skipped else ""
        lines.append(f"wp.autograd.gradcheck_tape: {word}: {said.message}{looked}{skipped}")
    return lines


def _row(row: Isolated) -> str:
    name = f"custom gradient of {row.kernel}" if row.what == "function" else f"{row.kernel} {place(row)}, op {row.op}"
    where = f" {place(row)}" if row.what == "function" else ""
    counted = f", {row.wrong} of {row.samples} samples wrong" if row.samples else ""
    about = f" [{row.argument}]" if row.argument else ""
    reason = f" ({row.reason})" if row.reason else ""
    restored = f", {row.restored} with its own inputs restored" if row.restored else ""
    return f"{row.verdict.upper()}: {name}{where}{about}: {pair(row)}{counted}{reason}{restored}"

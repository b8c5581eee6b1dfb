"""A diagnosis as text: the cause first, then the numbers, then what was done."""

from __future__ import annotations

from warp_debug_gradients.render.text import cut, number, pair, place, section
from warp_debug_gradients.schemas import Cause, DiagnoseResult

EVIDENCE = {"concise": 4, "full": 40}  # sentences a cause
CAUSES = {"concise": 3, "full": 40}


def diagnosis(result: DiagnoseResult, detail: str) -> list[str]:
    """What follows the first line and the message."""
    lines: list[str] = []
    for position, cause in enumerate(result.causes[: CAUSES[detail]]):
        lines += _cause(position + 1, cause, EVIDENCE[detail])
    rest = result.causes[CAUSES[detail] :]
    if rest:
        lines.append(f"Further causes: {', '.join(f'{c.code} {place(c)}' for c in rest)}")
    if result.parameter:
        objective = f", objective {result.objective}" if result.objective else ""
        lines.append(f"Parameter {result.parameter}{objective}, iteration {result.iteration}")
    if result.horizon:
        extent = "full horizon" if result.horizon.full else "PART of the horizon only"
        lines.append(f"Horizon: {extent}: {result.horizon.windows} backward call(s), {result.horizon.ops} tape ops")
    if result.gradient and result.gradient.autodiff is not None:
        lines.append(f"Gradient: {pair(result.gradient)}")
    if len(result.checks) > 1:
        rows = [
            f"iteration {c.iteration}, {c.parameter}: {c.verdict}{f' [{c.reason}]' if c.reason else ''}; {pair(c)}"
            for c in result.checks
        ]
        lines += section("All checks", cut(rows, 6 if detail == "concise" else 60))
    if result.picture:
        lines.append(f"Ledger as a picture: {result.picture}")
    stages = [f"{s.name} {number(s.seconds)} s" for s in result.stages]
    lines.append(f"Done: {', '.join(stages)}")
    return lines


def _cause(position: int, cause: Cause, most: int) -> list[str]:
    names = f", variables {', '.join(cause.variables[:4])}" if cause.variables else ""
    kernel = f", kernel {cause.kernel}" if cause.kernel else ""
    lines = [f"Cause {position}: {cause.code} ({cause.confidence}) at {place(cause) or 'no line'}{kernel}{names}"]
    lines += [f"  - {sentence}" for sentence in cause.evidence[:most]]
    if cause.repair:
        lines.append(f"  Repair: {cause.repair}")
    seen = [
        text for text in (cause.quick_check, f"Warp: {cause.documentation}" if cause.documentation else None) if text
    ]
    return [*lines, f"  Read: {'; '.join(seen)}"] if seen else lines

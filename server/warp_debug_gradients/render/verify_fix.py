"""The answer of verify_fix as text."""

from __future__ import annotations

from warp_debug_gradients.render.text import cut, number, percent, place, section
from warp_debug_gradients.schemas import ComparedCheck, LedgerSide, Measured, VerifyFixResult

OUTCOMES = {
    "fixed": "FIXED: the gradient is right now, and the program computes the same objective",
    "not_fixed": "NOT FIXED: the gradient is still wrong",
    "improved_but_wrong": "IMPROVED, BUT STILL WRONG: another fault is left",
    "masked": "MASKED: the check no longer disagrees, but the program computes something else",
    "regressed": "REGRESSED: it is worse than before",
    "inconclusive": "INCONCLUSIVE: not decided",
}
FIXED_AND_MOVED = "FIXED: the gradient is right now; the program's forward values are others than before"
DIFF_LINES = {5: 12, 60: 120}


def heading(result: VerifyFixResult) -> str:
    """The outcome as one line."""
    moved = any(c.what in ("objective", "derivative", "start") for c in result.changes)
    return FIXED_AND_MOVED if result.outcome == "fixed" and moved else OUTCOMES[result.outcome]


def verify_fix(result: VerifyFixResult, few: int) -> list[str]:
    """The lines between the message and the causes."""
    lines: list[str] = []
    if result.baseline:
        lines.append(f"Baseline: {result.baseline.run_id} ({result.baseline.operation})")
    sides = [("before", result.before), ("now", result.after)]
    rows = [f"{name}: {_side(side)}" for name, side in sides if side and side.autodiff is not None]
    along = f", along {result.before.direction}" if result.before and result.before.direction else ""
    lines += section(f"At the baseline's iteration{along}", rows)
    lines += section("Checks", cut([_check(c) for c in result.checks], max(few, 8)))
    rows = [f"{'MASKS: ' if c.masks else ''}{c.message}" for c in result.changes]
    lines += section("Changed besides the gradient", cut(rows, few))
    ledgers = [("before", result.ledger_before), ("now", result.ledger_after)]
    lines += section("Ledger", [f"{name}: {_ledger(side)}" for name, side in ledgers if side])
    files = [f"{f.file}: {f.status.replace('_', ' ')}, +{f.added} -{f.removed}" for f in result.files]
    lines += section("Loaded files that differ", cut(files, few))
    lines += section("Edited, but not loaded by this program", cut(result.edited_elsewhere, few))
    diff = result.diff.splitlines()
    shown = DIFF_LINES.get(few, 12)
    lines += [*section("Diff", diff[:shown]), *([f"  ... {len(diff) - shown} more lines"] if len(diff) > shown else [])]
    if result.workflow:
        lines.append(f"Workflow: {result.workflow.command}: {result.workflow.message}")
    if result.report_html:
        lines.append(f"Report: {result.report_html} (and {result.report})")
    return lines


def _side(side: Measured) -> str:
    error = f" ± {number(side.error)}" if side.error is not None else ""
    horizon = f", {side.horizon.windows} backward call(s), {side.horizon.ops} ops" if side.horizon else ""
    return (
        f"AD = {number(side.autodiff)}, FD = {number(side.finite_difference)}{error}, AD/FD = {number(side.ratio)}, "
        f"error over all directions {percent(side.whole_error)} -> {side.verdict}; objective {number(side.objective)}{horizon}"
    )


def _check(row: ComparedCheck) -> str:
    point = {True: "same point", False: "another point", None: "point not compared"}[row.same_point]
    before = f"{row.before} ({percent(row.before_relative_error)})" if row.before else "not checked"
    reason = f" [{row.after_reason}]" if row.after_reason else ""
    return f"iteration {row.iteration}, {row.parameter}: {before} -> {row.after}{reason} ({percent(row.after_relative_error)}), {point}"


def _ledger(side: LedgerSide) -> str:
    rows = [f"{percent(j.share)} {place(j)} {j.kernel or ''}".strip() for j in side.jumps[:3]]
    where = f"iteration {side.iteration}: " if side.iteration is not None else ""
    return where + side.message + (f": {'; '.join(rows)}" if rows else "")

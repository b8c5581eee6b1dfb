"""A result as short plain text: the verdict first, every number with its label, file:line where there is one.

Renderers never compute: what is printed is in the result.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from warp_debug_gradients.schemas import (
    ArrayInfo,
    CheckSummary,
    Detail,
    GradcheckResult,
    IterationHealth,
    Location,
    Result,
    RunReproResult,
    ScriptError,
)

TITLES = {
    "agree": "AGREE: the gradient is right",
    "disagree": "DISAGREE: the gradient is wrong",
    "inconclusive": "INCONCLUSIVE: not decided",
}
FEW = {"concise": 5, "full": 60}


def render(result: Result, detail: Detail = "concise") -> str:
    """The text for a person or an agent."""
    lines = [title(result), result.message]
    if result.error:
        lines += _error(result.error)
    if isinstance(result, GradcheckResult):
        lines += _gradcheck(result, FEW[detail])
    if isinstance(result, RunReproResult):
        lines += _repro(result, FEW[detail])
    lines += _section(
        "Causes",
        [f"{c.code} ({c.confidence}) {place(c)}: {'; '.join(c.evidence)}. {c.repair or ''}" for c in result.causes],
    )
    lines += _section("Ruled out", result.ruled_out)
    lines += _section("Not covered", result.blind_spots)
    lines += _section("Notes", result.notes[: FEW[detail]])
    if result.next:
        arguments = json.dumps(result.next.arguments)
        lines.append(f"Next: {result.next.tool} {arguments}  ({result.next.why})")
    lines.append(f"Evidence: {result.evidence} (rerun.sh repeats it)")
    return "\n".join(line.rstrip() for line in lines if line)


def title(result: Result) -> str:
    """The first line: the verdict, or why there is none."""
    words = {"blocked": "BLOCKED: the program does not run", "timeout": "OUT OF TIME", "failed": "FAILED"}
    word = words.get(result.status) or TITLES.get(result.verdict or "", "COMPLETED")
    if result.status == "timeout" and result.verdict:
        word += f", so far {result.verdict}"
    reason = f" [{result.reason}]" if result.reason else ""
    return f"{word}{reason}"


def number(value: float | str | None) -> str:
    """Six significant digits; non-finite values by name."""
    return "?" if value is None else value if isinstance(value, str) else f"{value:.6g}"


def percent(value: float | str | None) -> str:
    """A relative error."""
    if value is None or isinstance(value, str):
        return number(value)
    return f"{100 * value:.3g}%"


def place(where: Any) -> str:
    """file:line, where known."""
    if where is None or not getattr(where, "file", None):
        return ""
    return f"{where.file}:{where.line}" if where.line else str(where.file)


def pair(item: Any) -> str:
    """Autodiff and finite difference, side by side, both labelled."""
    if item.autodiff is None and item.finite_difference is None:
        return "nothing measured"
    text = f"AD = {number(item.autodiff)}, FD = {number(item.finite_difference)}"
    if item.error is not None:
        text += f" ± {number(item.error)}"
    relative = getattr(item, "relative_error", None)
    return text if relative is None else f"{text}, relative error {percent(relative)}"


def _gradcheck(result: GradcheckResult, few: int) -> list[str]:
    lines: list[str] = []
    if result.parameter:
        objective = f", objective {result.objective}" if result.objective else ""
        lines.append(f"Parameter {result.parameter}{objective}, iteration {result.iteration}")
    if result.horizon:
        h = result.horizon
        span = f", {place(h.start)} to {place(h.end)}" if place(h.start) else ""
        extent = "full horizon" if h.full else "PART of the horizon only"
        lines.append(f"Horizon: {extent}: {h.windows or '?'} backward call(s), {h.ops or '?'} tape ops{span}")
    if result.gradient and result.gradient.autodiff is not None:
        lines.append(f"Gradient: {pair(result.gradient)}")
        rows = [f"{d.label}: {pair(d)} -> {d.verdict}" for d in result.gradient.directions]
        lines += _section("Directions", _cut(rows, few))
        rows = [
            f"{e.component or e.index}: {pair(e)}, ratio {number(e.ratio)} -> {e.verdict}"
            for e in result.gradient.elements
        ]
        lines += _section("Elements", _cut(rows, few))
    rows = [f"backward call {w.backward_call} {place(w)}: {pair(w)} -> {w.verdict}" for w in result.windows]
    if len(rows) > 1:
        lines += _section("Windows by themselves", _cut(rows, few))
    if len(result.checks) > 1:
        lines += _section("All checks", _cut([_check(c) for c in result.checks], max(few, 8)))
    if result.warp_gradcheck:
        said = "passed" if result.warp_gradcheck.passed else "failed"
        vacuous = " (vacuously: it compared nothing)" if result.warp_gradcheck.vacuous else ""
        lines.append(f"wp.autograd.gradcheck: {said}{vacuous}. {result.warp_gradcheck.message or ''}")
    lines.append(_environment(result) + (f", {result.engine} engine" if result.engine else ""))
    return lines


def _check(check: CheckSummary) -> str:
    reason = f" [{check.reason}]" if check.reason else ""
    return f"iteration {check.iteration}, {check.parameter}: {check.verdict}{reason}; {pair(check)}"


def _repro(result: RunReproResult, few: int) -> list[str]:
    lines = [_environment(result)]
    if result.seconds:
        lines.append("Seconds: " + ", ".join(f"{name} {value:.3g}" for name, value in result.seconds.items()))
    lines += _section("Parameters (gradient is read)", _cut([_array(p) for p in result.parameters], few))
    lines += _section("Other leaves with gradients (not chosen)", _cut([_array(p) for p in result.leaves], few))
    lines += _section("Objectives", _cut([f"{o.name} ({o.kind}) {place(o)}" for o in result.objectives], few))
    lines += _section("Iterations", _middle([_iteration(i) for i in result.iterations], few))
    rows = [f"{s.name}: {number(s.first)} -> {number(s.last)} over {s.count} lines, {s.trend}" for s in result.metrics]
    lines += _section("Printed metrics", _cut(rows, few))
    if result.structure:
        s = result.structure
        kernels = ", ".join(f"{name} x{count}" for name, count in list(s.kernels.items())[:8])
        lines.append(f"Structure: {s.launches_per_iteration} launches an iteration ({kernels}), {s.arrays} arrays")
    if result.structure_compared:
        lines.append(f"Overrides changed: {result.structure_compared}")
    rows = [f"{k.name}={k.value} ({place(k)}) bounds {k.bounds}; try {k.suggested}" for k in result.shrink]
    return lines + _section("Knobs to shrink it (only on request: overrides / --set)", _cut(rows, few))


def _iteration(item: IterationHealth) -> str:
    loss = ", ".join(number(v) for v in item.losses[:4]) or "none seen"
    read = f", gradient read {place(item.gradient_read)}" if item.gradient_read else ""
    if item.gradient_read and item.gradient_read.when == "before":
        read += " BEFORE backward"
    return (
        f"{item.index}: loss {loss}, |gradient| {number(item.gradient_norm)}, {item.ops} ops, "
        f"{item.backward_calls} backward call(s){read}"
    )


def _array(item: ArrayInfo) -> str:
    shape = "x".join(map(str, item.shape)) or "scalar"
    return f"{item.name} [{shape} {item.dtype}] {place(item.allocated)}"


def _error(error: ScriptError) -> list[str]:
    at = Location(file=error.file, line=error.line) if error.file else None
    function = f" in {error.function}" if error.function else ""
    lines = [f"At {place(at)}{function}: {error.source or ''}"] if at else []
    if error.kernel or error.compiler_message:
        lines.append(f"Kernel {error.kernel or '?'}: {error.compiler_message or ''}")
    if error.advice:
        lines.append(f"Do: {error.advice}")
    return lines


def _environment(result: Result) -> str:
    interpreter = f"{result.interpreter.path} ({result.interpreter.why})" if result.interpreter else "?"
    return f"Warp {result.warp_version or '?'} on {result.device or '?'}, Python {interpreter}"


def _section(name: str, rows: Sequence[str]) -> list[str]:
    return [f"{name}:", *(f"  {row}" for row in rows)] if rows else []


def _cut(rows: list[str], few: int) -> list[str]:
    if len(rows) <= few:
        return rows
    return [*rows[:few], f"... {len(rows) - few} more (detail=full, or result.json)"]


def _middle(rows: list[str], few: int) -> list[str]:
    if len(rows) <= few:
        return rows
    return [*rows[: few - 2], f"... {len(rows) - few} more (detail=full, or result.json)", *rows[-2:]]

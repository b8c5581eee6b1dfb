"""A result as short plain text: the verdict first, every number with its label, file:line where there is one.

Renderers never compute: what is printed is in the result.
"""

from __future__ import annotations

import json

from warp_debug_gradients.render.diagnosis import diagnosis
from warp_debug_gradients.render.isolated import isolated_lines
from warp_debug_gradients.render.scan import lines_of, title_of
from warp_debug_gradients.render.text import cut, middle, moved_by, number, pair, percent, place, section
from warp_debug_gradients.render.verify_fix import heading, verify_fix
from warp_debug_gradients.schemas import (
    ArrayInfo,
    BisectStepsResult,
    CheckSummary,
    Detail,
    DiagnoseResult,
    EnableTrackerResult,
    GradcheckResult,
    IterationHealth,
    Jump,
    KnobPoint,
    Location,
    Observation,
    Overwrite,
    Result,
    RunReproResult,
    ScanPatternsResult,
    ScriptError,
    Term,
    TrackerWarning,
    VerifyFixResult,
    WhatIf,
)

TITLES = {
    "agree": "AGREE: the gradient is right",
    "disagree": "DISAGREE: the gradient is wrong",
    "inconclusive": "INCONCLUSIVE: not decided",
}
FEW = {"concise": 5, "full": 60}
EVIDENCE = 5  # sentences a cause in the text; all of them are in the result


def render(result: Result, detail: Detail = "concise") -> str:
    """The text for a person or an agent."""
    lines = [title(result), result.message]
    if result.error:
        lines += _error(result.error)
    if isinstance(result, DiagnoseResult):
        lines += [*diagnosis(result, detail), _environment(result)]
    else:
        lines += _body(result, detail)
    lines += section("Ruled out", result.ruled_out)
    lines += section("Not covered", result.blind_spots)
    lines += section("Notes", result.notes[: FEW[detail]])
    if result.next:
        arguments = json.dumps(result.next.arguments)
        lines.append(f"Next: {result.next.tool} {arguments}  ({result.next.why})")
    lines.append(f"Evidence: {result.evidence} (rerun.sh repeats it)")
    return "\n".join(line.rstrip() for line in lines if line)


def _body(result: Result, detail: Detail) -> list[str]:
    """What an operation has to tell besides what all have, and its causes."""
    lines: list[str] = []
    if isinstance(result, GradcheckResult):
        lines += _gradcheck(result, FEW[detail])
    if isinstance(result, RunReproResult):
        lines += _repro(result, FEW[detail])
    if isinstance(result, EnableTrackerResult):
        lines += _tracker(result, FEW[detail])
    if isinstance(result, BisectStepsResult):
        lines += _bisect(result, FEW[detail])
    if isinstance(result, ScanPatternsResult):
        lines += lines_of(result, detail)
    if isinstance(result, VerifyFixResult):
        lines += [*verify_fix(result, FEW[detail]), _environment(result)]
    rows = [
        f"{c.code} ({c.confidence}) {place(c)}: {'; '.join(c.evidence[:EVIDENCE])}. {c.repair or ''}"
        for c in result.causes
    ]
    return lines + section("Causes", cut(rows, FEW[detail]))


def title(result: Result) -> str:
    """The first line: the verdict, or why there is none."""
    words = {"blocked": "BLOCKED: the program does not run", "timeout": "OUT OF TIME", "failed": "FAILED"}
    word = words.get(result.status) or _found(result) or TITLES.get(result.verdict or "", "COMPLETED")
    if result.status == "timeout" and result.verdict:
        word += f", so far {result.verdict}"
    reason = f" [{result.reason}]" if result.reason else ""
    return f"{word}{reason}"


def _found(result: Result) -> str | None:
    """The first words where it is not the verdict that was asked for."""
    if isinstance(result, ScanPatternsResult):
        return title_of(result)
    if isinstance(result, EnableTrackerResult):
        what = (
            "a harmful overwrite"
            if any(o.harmful for o in result.overwrites)
            else "a write that the tape does not know"
        )
        clean = f"NOTHING FOUND: {result.sampled}" if result.sampled else "CLEAN: no harmful overwrite"
        return {0: clean, 1: f"FOUND: {what}"}.get(result.exit_code, TITLES["inconclusive"])
    if isinstance(result, DiagnoseResult):
        return None
    if isinstance(result, BisectStepsResult):
        words = "CLEAN: nothing stands out" if result.verdict == "agree" else "NOTHING FOUND"
        small = result.verdict == "agree"
        found = "FOUND: a fault too small for the verdict" if small else "FOUND: where the gradient goes wrong"
        return {0: words, 1: found}.get(result.exit_code, TITLES["inconclusive"])
    if isinstance(result, VerifyFixResult):
        return heading(result)
    return None


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
        lines += section("Directions", cut(rows, few))
        rows = [
            f"{e.component or e.index}: {pair(e)}, ratio {number(e.ratio)} -> {e.verdict}"
            for e in result.gradient.elements
        ]
        lines += section("Elements", cut(rows, few))
    rows = [f"backward call {w.backward_call} {place(w)}: {pair(w)} -> {w.verdict}" for w in result.windows]
    truncated = any(cause.code == "truncation" for cause in result.causes)
    if len(rows) > 1 or (rows and truncated):
        lines += section("Windows by themselves", cut(rows, few))
    if len(result.checks) > 1:
        lines += section("All checks", cut([_check(c) for c in result.checks], max(few, 8)))
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
    lines += section("Parameters (gradient is read)", cut([_array(p) for p in result.parameters], few))
    lines += section("Other leaves with gradients (not chosen)", cut([_array(p) for p in result.leaves], few))
    lines += section("Objectives", cut([f"{o.name} ({o.kind}) {place(o)}" for o in result.objectives], few))
    lines += section("Iterations", middle([_iteration(i) for i in result.iterations], few))
    rows = [f"{s.name}: {number(s.first)} -> {number(s.last)} over {s.count} lines, {s.trend}" for s in result.metrics]
    lines += section("Printed metrics", cut(rows, few))
    if result.structure:
        s = result.structure
        kernels = ", ".join(f"{name} x{count}" for name, count in list(s.kernels.items())[:8])
        launches = f"{s.launches_per_iteration} launches an iteration ({kernels}), " if kernels else ""
        lines.append(f"Structure: {launches}{s.arrays} arrays")
    if result.structure_compared:
        lines.append(f"Overrides changed: {result.structure_compared}")
    rows = [f"{k.name}={k.value} ({place(k)}) bounds {k.bounds}; try {k.suggested}" for k in result.shrink]
    return lines + section("Knobs to shrink it (only on request: overrides / --set)", cut(rows, few))


def _tracker(result: EnableTrackerResult, few: int) -> list[str]:
    lines: list[str] = []
    if result.parameter:
        lines.append(f"Iteration {result.iteration}, parameter {result.parameter}")
    lines += section("Content check (ours)", cut([_overwrite(o) for o in result.overwrites], few))
    lines += _what_if(result.what_if, few)
    if result.tracker_available:
        rows = [_warning(w) for w in result.warnings] or ["no warning"]
        lines += section("Warp's own tracker", cut(rows, few))
        lines += section("Warp's tracker cannot see", result.tracker_blind_spots)
    lines += section("Observed on the tape", cut([_observation(o) for o in result.observations], few))
    return [*lines, _environment(result)]


def _overwrite(row: Overwrite) -> str:
    harm = {True: "HARMFUL", False: "harmless", None: "undecided"}[row.harmful]
    moved = f"moved by {moved_by(row.change.relative, row.change.max_abs)}" if row.change else "moved by ?"
    reader, writer = row.reader, row.writer
    times = f" x{row.ops}" if (row.ops or 0) > 1 else ""
    read = f"read by {(reader.kernel if reader else None) or '?'}({row.argument or '?'}) {place(reader)}{times}"
    write = f"written by {(writer.what if writer else None) or '?'} {place(writer)}"
    how = ", in the same kernel" if row.how == "in_kernel" else ""
    path = f", {row.path}" if row.path else ""
    return f"{harm}: {row.variable} ({place(row.allocated)}{path}) {read}, op {row.op}; {write}{how}; {moved}"


def _warning(row: TrackerWarning) -> str:
    what = {"copy": "written by a copy", "in_kernel": "overwritten inside the kernel that reads it"}.get(
        row.kind, f"written by {row.kernel}({row.argument})"
    )
    kernel = f" {row.kernel}" if row.kind == "in_kernel" else ""
    stale = ", STALE: discount it" if row.stale else ""
    return f"{row.array} {what}{kernel} at {place(row)}, x{row.count}{stale}"


def _what_if(found: WhatIf | None, few: int) -> list[str]:
    if found is None:
        return []
    lines = [
        f"What if the clobbered reads are restored: FD = {number(found.finite_difference)}, AD as it is "
        f"{number(found.as_is)} (off by {percent(found.relative_error_as_is)}), restored {number(found.restored)} "
        f"(off by {percent(found.relative_error_restored)})"
    ]
    if len(found.arrays) > 1:
        rows = [f"{a.variable} alone: {number(a.restored)} (off by {percent(a.relative_error)})" for a in found.arrays]
        lines += [f"  {row}" for row in cut(rows, few)]
    return lines


def _observation(row: Observation) -> str:
    return f"{row.kind}: {row.message} {f'({place(row)})' if place(row) else ''}"


def _bisect(result: BisectStepsResult, few: int) -> list[str]:
    lines: list[str] = []
    if result.parameter:
        lines.append(
            f"Parameter {result.parameter}, iteration {result.iteration}"
            + (
                f", backward call {result.backward_call}, step {number(result.step)}"
                if result.method == "ledger"
                else ""
            )
        )
    if result.gradient and result.gradient.autodiff is not None:
        lines.append(f"Gradient: {pair(result.gradient)}")
    shown = [j for j in result.jumps if j.significant] or result.jumps[:2]
    lines += section("Jumps (part of the derivative that a launch line puts in)", cut([_jump(j) for j in shown], few))
    quiet = len(result.jumps) - len(shown)
    if quiet and any(j.significant for j in shown):
        lines.append(f"  {quiet} other line(s) stay within their noise")
    rows = [_term("seed of backward", result.seed)] if result.seed and result.seed.significant else []
    rows += [_term("stale gradient of", t) for t in result.stale if t.significant]
    rows += [_term("derivative that came in before the tape with", t) for t in result.truncated if t.significant]
    lines += section("Terms outside the launches", cut(rows, few))
    if result.nonfinite:
        born = result.nonfinite
        lines.append(
            f"Non-finite born at op {born.op}, {born.kernel} {place(born)}, {born.variable} {born.elements[:4]}"
        )
    harmful = [o for o in result.overwrites if o.harmful is not False]
    lines += section("Overwritten reads", cut([_overwrite(o) for o in harmful], few))
    lines += _what_if(result.what_if, few)
    lines += isolated_lines(result, few)
    lines += section(f"{result.knob}", cut([_point(p) for p in result.points], max(few, 12)))
    lines += section("Observed on the tape", cut([_observation(o) for o in result.observations], few))
    if result.picture:
        lines.append(f"Picture: {result.picture}")
    return [*lines, _environment(result)]


def _jump(row: Jump) -> str:
    kind = "" if row.kind == "adjoint" else f" [{row.kind}: {', '.join(a.variable or '?' for a in row.lost) or '?'}]"
    restored = f", {percent(row.share_restored)} with reads restored" if row.share_restored is not None else ""
    mark = "" if row.significant else " (within noise)"
    writers = ", ".join(f"{w.what} {place(w)}" for w in row.writers[:2])
    by = f"; inputs overwritten by {writers}" if writers else ""
    return f"{percent(row.share)} ± {percent(row.noise)} {place(row)} {row.kernel or ''} x{row.ops}{kind}{restored}{by}{mark}"


def _term(name: str, row: Term | None) -> str:
    return f"{name} {row.variable or ''}: {percent(row.share)} of the derivative {place(row.allocated)}" if row else ""


def _point(row: KnobPoint) -> str:
    verdict = row.verdict or f"not decided [{row.reason}]"
    objective = f", objective {number(row.objective)}" if row.objective is not None else ""
    norm = f", |gradient| {number(row.gradient_norm)}" if row.gradient_norm is not None else ""
    return f"= {row.value}: {pair(row)} -> {verdict}{objective}{norm}, {row.seconds} s"


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
    return f"Warp {result.warp_version or '?'} on {result.device or 'device not initialised'}, Python {interpreter}"

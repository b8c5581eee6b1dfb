"""run_repro: does the script run, and what is in it to be checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from warp_debug_gradients.evidence import finished_runs, read_result
from warp_debug_gradients.metrics import printed_series
from warp_debug_gradients.operations.measurement import Measurement, first_line, refuse_unusable, script_error
from warp_debug_gradients.records import Iteration, Trace, part
from warp_debug_gradients.schemas import (
    ArrayInfo,
    IterationHealth,
    Knob,
    NextCall,
    NonFinite,
    ObjectiveInfo,
    RunReproRequest,
    RunReproResult,
    Structure,
    Target,
)
from warp_debug_gradients.shrink import find_knobs
from warp_debug_gradients.worker import OnProgress, ProbeOutcome
from warp_debug_gradients.workspace import Workspace

OPERATION = "run_repro"


async def run_repro(
    request: RunReproRequest, workspace: Workspace, on_progress: OnProgress | None = None
) -> RunReproResult:
    """Runs the script once, watched, and reports."""
    measurement = Measurement(OPERATION, request, workspace, on_progress)
    outcome = await measurement.probe("trace")
    refuse_unusable(outcome, request)
    return measurement.finish(build_result(measurement, outcome))


def build_result(measurement: Measurement[RunReproRequest], outcome: ProbeOutcome) -> RunReproResult:
    """The trace as the operation's result."""
    trace = outcome.trace
    if loaded := trace.get("loaded_files"):
        measurement.evidence.snapshot_sources(loaded)
    blocked = trace.get("status") == "failed" or (not trace and not outcome.timed_out)
    stopped = not blocked and (trace.get("status") == "stopped" or outcome.timed_out)
    iterations = trace.get("iterations") or []
    result = RunReproResult(
        **measurement.base(),
        status="blocked" if blocked else "timeout" if stopped else "completed",
        reason="does_not_run" if blocked else "time" if stopped else None,
        message="",
        error=script_error(outcome, measurement) if blocked else None,
        warp_version=trace.get("warp_version"),
        device=trace.get("device"),
        seconds=part(trace, "seconds") or {"total": round(outcome.seconds, 3)},
        notes=trace.get("notes") or [],
        metrics=printed_series(outcome.output),
    )
    if not blocked:
        _add_findings(result, trace, iterations)
        result.shrink = workspace_knobs(measurement.workspace, trace.get("loaded_files") or measurement.target_files)
        if measurement.request.overrides:
            result.structure_compared = compare_structure(measurement, result.structure)
    result.message = _message(result)
    result.next = _next(result, measurement.request)
    return result


def _add_findings(result: RunReproResult, trace: Trace, iterations: list[Iteration]) -> None:
    result.parameters = [ArrayInfo.model_validate(p) for p in trace.get("parameters") or []]
    result.leaves = [ArrayInfo.model_validate(p) for p in trace.get("leaves") or []]
    result.objectives = [ObjectiveInfo.model_validate(o) for o in trace.get("objectives") or []]
    result.iterations = [iteration_health(item) for item in iterations]
    result.iterations_seen = trace.get("iterations_seen") or len(iterations)
    result.nonfinite = NonFinite.model_validate(trace.get("nonfinite")) if trace.get("nonfinite") else None
    result.structure = Structure.model_validate(trace.get("structure")) if trace.get("structure") else None
    result.parameter = ", ".join(p.name for p in result.parameters) or None
    result.objective = result.objectives[0].name if result.objectives else None
    result.blind_spots = ["Nothing was said about the gradient's correctness: run_repro measures no derivative."]


def iteration_health(item: Iteration) -> IterationHealth:
    """One iteration of the trace, without the plan."""
    calls = item.get("backward_calls")
    return IterationHealth.model_validate({**item, "backward_calls": len(calls) if calls is not None else None})


def workspace_knobs(workspace: Workspace, files: list[Any]) -> list[Knob]:
    """The constants that would shrink the run, in the workspace's loaded files."""
    knobs: list[Knob] = []
    for file in map(Path, files):
        relative = workspace.relative(file)
        if file.suffix == ".py" and file.is_file() and not Path(relative).is_absolute():
            knobs += find_knobs(file.read_text(errors="replace"), relative, file.stem)
    return knobs


def compare_structure(measurement: Measurement[RunReproRequest], now: Structure | None) -> str:
    """What the overrides changed, against the latest unshrunk run of the same program in the evidence."""
    request: Target = measurement.request
    for entry in finished_runs(measurement.workspace):
        same = all(entry.get(k) == getattr(request, k) for k in ("script", "module", "forward", "args"))
        if same and entry["operation"] == OPERATION and entry["status"] == "completed" and not entry["overrides"]:
            stored = (read_result(measurement.workspace, entry["run_id"]) or {}).get("structure")
            if stored and now:
                return f"against {entry['run_id']}: {structure_change(Structure.model_validate(stored), now)}"
    return "unknown: no earlier run without overrides is in the evidence. Run run_repro once without them to compare."


def structure_change(before: Structure, after: Structure) -> str:
    """In words, the difference of two structures."""
    gone, new = sorted(set(before.kernels) - set(after.kernels)), sorted(set(after.kernels) - set(before.kernels))
    parts = [f"launches an iteration {before.launches_per_iteration} -> {after.launches_per_iteration}"]
    parts.append(f"arrays {before.arrays} -> {after.arrays}")
    parts.append("the same kernels" if not gone and not new else f"kernels gone: {gone}, new: {new}")
    return "; ".join(parts)


def _message(result: RunReproResult) -> str:
    if result.status == "blocked" and result.error:
        return f"The program does not run: {result.error.type}: {first_line(result.error.message)}. Nothing else was measured."
    seen = f"{result.iterations_seen} optimizer iteration{'s' if result.iterations_seen != 1 else ''} seen"
    if result.status == "timeout":
        return f"Time ran out before the program ended; {seen}. What was seen so far is reported."
    if not result.iterations_seen:
        return "The program runs, but no optimizer iteration was seen (no Tape.backward whose gradient is read)."
    if result.nonfinite:
        where = f"{result.nonfinite.what or 'value'} {result.nonfinite.name or ''}".strip()
        return f"The program runs; {seen}; the first non-finite value is the {where} in iteration {result.nonfinite.iteration}."
    return f"The program runs; {seen}; all losses and gradients watched are finite."


def _next(result: RunReproResult, request: Target) -> NextCall | None:
    arguments = request.model_dump(exclude_defaults=True)
    if result.status == "blocked":
        return NextCall(tool=OPERATION, arguments=arguments, why="After the repair of the error: does it run now?")
    if not result.iterations_seen and result.status == "timeout":
        longer = {**arguments, "timeout_s": min(request.timeout_s * 4, 3600)}
        return NextCall(
            tool=OPERATION, arguments=longer, why="No iteration was reached in the time given; or shrink it."
        )
    return NextCall(
        tool="gradcheck_full_horizon", arguments=arguments, why="Measures whether the gradient it trains on is right."
    )

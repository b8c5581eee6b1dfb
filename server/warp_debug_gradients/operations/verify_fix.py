"""verify_fix: the baseline's check once more, with its own settings, on the files as they are now."""

from __future__ import annotations

from typing import Any

from warp_debug_gradients import report
from warp_debug_gradients.errors import ProbeFailed
from warp_debug_gradients.operations import bisect_steps, explain, gradcheck, next_calls
from warp_debug_gradients.operations import ledger as ledgers
from warp_debug_gradients.operations.baseline import (
    BaselineError,
    RecordedCheck,
    earlier_ledger,
    find_baseline,
    settle_request,
)
from warp_debug_gradients.operations.comparison import (
    Comparison,
    compare,
    compared_checks,
    compared_directions,
    measured,
    worst_direction,
)
from warp_debug_gradients.operations.forward_change import Side
from warp_debug_gradients.operations.iterations import plan_with
from warp_debug_gradients.operations.ledger_comparison import ledger_side, vanished
from warp_debug_gradients.operations.measurement import Measurement, first_line, refuse_unusable, script_error
from warp_debug_gradients.operations.repeated_plan import find_parameters, iterations_to_check, pinned_plans
from warp_debug_gradients.operations.source_changes import (
    edited_but_not_loaded,
    file_changes,
    read_hashes,
    shortened,
)
from warp_debug_gradients.operations.workflow import judge_workflow, run_health, run_workflow
from warp_debug_gradients.records import Trace, parts
from warp_debug_gradients.schemas import (
    Baseline,
    Cause,
    ForwardChange,
    LedgerSide,
    NextCall,
    VerifyFixRequest,
    VerifyFixResult,
)
from warp_debug_gradients.worker import OnProgress, ProbeOutcome
from warp_debug_gradients.workspace import Workspace

OPERATION = "verify_fix"
TRACE_SHARE = 0.35
CHECK_SHARE = 0.7
LEDGER_SHARE = 0.6
LEDGER_RUNS = 6  # a ledger costs about so many runs of the program


async def verify_fix(
    request: VerifyFixRequest, workspace: Workspace, on_progress: OnProgress | None = None
) -> VerifyFixResult:
    """Finds the baseline, repeats its check, and says whether the fault is gone, hidden, or still there."""
    baseline = find_baseline(workspace, request.baseline)
    request = settle_request(request, baseline)
    measurement = Measurement(OPERATION, request, workspace, on_progress)
    outcome = await measurement.trace(TRACE_SHARE, again=True)
    refuse_unusable(outcome, request)
    trace = outcome.trace
    if loaded := trace.get("loaded_files"):
        measurement.evidence.snapshot_sources(loaded)
    result = VerifyFixResult(
        **measurement.base(),
        **ledgers.common(trace),
        status="completed",
        message="",
        baseline=_named(baseline, workspace),
    )
    result.before = measured(measurement.relative_files(baseline.headline), worst_direction(baseline.headline))
    _compare_files(result, measurement, baseline)
    if not _has_obstacle(result, measurement, baseline, outcome):
        await _measure(result, measurement, baseline, trace)
    await _run_workflow(result, measurement, baseline, outcome)
    result.next = _next(result, request)
    folder = measurement.evidence.folder
    result.report, result.report_html = (workspace.relative(path) for path in report.paths(folder))
    finished = measurement.finish(result)
    try:
        report.write(folder)
    except Exception as error:  # the answer does not fail for want of its report
        finished.report = finished.report_html = None
        finished.notes.append(f"No report: {type(error).__name__}: {error}.")
        measurement.evidence.write_json("result.json", finished.model_dump(mode="json"))
    return finished


def _named(baseline: RecordedCheck, workspace: Workspace) -> Baseline:
    return Baseline(
        run_id=baseline.run_id,
        operation=baseline.operation,
        evidence=workspace.relative(baseline.folder),
        warp_version=baseline.trace.get("warp_version"),
        interpreter=baseline.interpreter,
    )


def _compare_files(result: VerifyFixResult, measurement: Measurement[Any], baseline: RecordedCheck) -> None:
    """What was edited since the baseline, and whether the program loads it."""
    folder = measurement.evidence.folder
    now = read_hashes(folder)
    result.files, diff = file_changes(baseline.sources, now, baseline.folder / "sources", folder / "sources")
    if diff:
        (folder / "changes.diff").write_text(diff)
        result.diff = shortened(diff, measurement.evidence.relative)
    if not result.files:
        result.edited_elsewhere = edited_but_not_loaded(measurement.workspace, baseline, now)
    if baseline.trace.get("warp_version") != result.warp_version and result.warp_version:
        old, new = str(baseline.trace.get("warp_version")), str(result.warp_version)
        text = f"Warp {old} measured the baseline, Warp {new} this run"
        result.changes.append(ForwardChange(what="warp", before=old, after=new, masks=False, message=text))


def _has_obstacle(
    result: VerifyFixResult, measurement: Measurement[Any], baseline: RecordedCheck, outcome: ProbeOutcome
) -> bool:
    """Whether the check cannot be repeated; the result then says why."""
    trace = outcome.trace
    headline = baseline.headline
    name, index = headline["parameter"]["name"], headline["iteration"]
    stopped = trace.get("status") == "stopped" or outcome.timed_out
    if trace.get("status") == "failed" or (not trace and not outcome.timed_out):
        result.status, result.reason, result.outcome = "blocked", "does_not_run", "regressed"
        result.error = script_error(outcome, measurement)
        said = f"{result.error.type}: {first_line(result.error.message)}"
        result.message = (
            f"The program ran for the baseline and does not run any more: {said}. No gradient was measured."
        )
        return True
    before, now = baseline.trace.get("device"), trace.get("device")
    if before and now and before != now:
        raise BaselineError(f"Not compared: the baseline was measured on {before}, this run on {now}.")
    indices = [item["index"] for item in trace.get("iterations") or []]
    if index not in indices and stopped:
        result.status, result.reason = "timeout", "time"
        result.message = f"Time ran out before iteration {index} was reached. Give it longer (timeout_s)."
        return True
    if name not in find_parameters(baseline.checks, baseline.trace, trace):
        leaves = [leaf["name"] for leaf in trace.get("leaves") or []]
        why = "its gradient is no longer read" if name in leaves else "no tape has a gradient of it any more"
        text = f"{name} is not trained any more: {why}"
        change = ForwardChange(what="training", before="trained", after="not trained", masks=True, message=text)
        result.outcome, result.reason, result.changes = "masked", "training_changed", [change, *result.changes]
        result.verdict = "inconclusive"
        others = ", ".join(p["name"] for p in trace.get("parameters") or []) or "none"
        result.message = (
            f"The check cannot disagree any more, but that proves no repair: {text}. Trained now: {others}. If it was only "
            "renamed, make a new baseline under the new name."
        )
        return True
    if index not in indices:
        result.outcome, result.reason, result.verdict = "inconclusive", "iteration_gone", "inconclusive"
        result.message = (
            f"The baseline disagreed in iteration {index}; the program has only {len(indices)} iterations now."
        )
        return True
    return False


async def _measure(
    result: VerifyFixResult, measurement: Measurement[VerifyFixRequest], baseline: RecordedCheck, trace: Trace
) -> None:
    """The check at the baseline's iterations and a later one, compared with the baseline; then the ledger."""
    names = find_parameters(baseline.checks, baseline.trace, trace)
    for old, new in names.items():
        if old != new:
            result.notes.append(f"The parameter {old} is taken to be called {new} now (the same shape and type).")
    plans = pinned_plans(trace, baseline.checks, names, iterations_to_check(trace, baseline.checks))
    engine = gradcheck.choose_engine(measurement.request.engine, trace)
    done = await gradcheck.evaluate(
        measurement, trace, plan_with(trace, plans), engine, share=CHECK_SHARE, options=baseline.options
    )
    checks = done.evaluation.get("checks") or []
    stopped = done.timed_out or done.evaluation.get("status") == "stopped"
    if not checks:
        if not stopped:
            detail = (done.evaluation.get("error") or {}).get("message") or done.death or "it reported no check"
            raise ProbeFailed(f"The check gave nothing: {detail}. Its output is in {measurement.evidence.relative}.")
        result.status, result.reason, result.message = "timeout", "time", explain.NO_TIME
        return
    changed = bool(result.files) or any(c.what == "warp" for c in result.changes)
    before, after = Side(measurement.relative_files(baseline.trace), baseline.checks), Side(trace, checks)
    comparison = compare(before, after, names, changed=changed)
    _take(result, comparison, before, after, stopped)
    await _keep_ledgers(result, measurement, baseline, trace, comparison)
    result.ruled_out += _ruled_out(result, comparison)


def _take(result: VerifyFixResult, comparison: Comparison, before: Side, after: Side, stopped: bool) -> None:
    """The comparison as it stands in the result."""
    result.outcome, result.reason, result.message = comparison.outcome, comparison.reason, comparison.message
    result.changes = sorted([*comparison.changes, *result.changes], key=lambda c: not c.masks)
    result.checks = compared_checks(before, after, comparison.pairs)
    result.blind_spots += comparison.blind_spots
    if comparison.pairs:
        result.after = measured(comparison.pairs[0][1], result.before.direction if result.before else None)
        result.directions = compared_directions(comparison.pairs[0])
        result.verdict, result.parameter = result.after.verdict, result.after.parameter
        result.iteration, result.horizon = result.after.iteration, result.after.horizon
        result.objective = (comparison.pairs[0][1].get("objective") or {}).get("name")
        seen = ", ".join(map(str, sorted({c["iteration"] for c in after.checks})))
        result.blind_spots.append(f"iterations other than {seen}")
        result.blind_spots += comparison.pairs[0][1].get("not_covered") or []
    if comparison.wrong_now is not None:
        result.verdict = "disagree"
    if stopped and result.outcome in ("fixed", "inconclusive"):
        missing = len(before.checks) - len(comparison.pairs)
        if missing > 0:
            result.blind_spots.append(f"{missing} of the baseline's checks, for lack of time")
    if not result.files and result.outcome == "not_fixed":
        _nothing_loaded_has_changed(result)


def _nothing_loaded_has_changed(result: VerifyFixResult) -> None:
    """As wrong as before, and no wonder. An edit that was not run is not judged."""
    if not result.edited_elsewhere:
        result.reason = "nothing_changed"
        result.message += " No file that the program loads has changed since the baseline."
        return
    result.outcome, result.reason = "inconclusive", "edit_not_loaded"
    result.message = (
        f"The edit was not judged: {', '.join(result.edited_elsewhere)} changed since the baseline, but this program does "
        f"not load it; every file that it loads is as it was. {result.message}"
    )


async def _keep_ledgers(
    result: VerifyFixResult,
    measurement: Measurement[VerifyFixRequest],
    baseline: RecordedCheck,
    trace: Trace,
    comparison: Comparison,
) -> None:
    """Where what is left comes from; and the ledger of the baseline, if a run in the evidence kept it."""
    earlier = earlier_ledger(measurement.workspace, baseline)
    for run in (earlier, baseline):
        if run and not result.causes_before:
            result.causes_before = [Cause.model_validate(c) for c in parts(run.result, "causes")]
    if earlier and earlier.ledger:
        result.ledger_before = ledger_side(earlier.run_id, measurement.relative_files(earlier.ledger))
    else:
        result.ledger_before = LedgerSide(
            message="not measured: no bisect_steps of the baseline's files is in the evidence"
        )
    same = [now for _, now in comparison.pairs if now["iteration"] == result.ledger_before.iteration]
    check = comparison.wrong_now or next(iter([*same, *(now for _, now in comparison.pairs)]), None)
    enough = measurement.remaining > LEDGER_RUNS * float((trace.get("seconds") or {}).get("total") or 1.0)
    if check is None or not (enough or comparison.wrong_now):
        result.ledger_after = LedgerSide(message="not measured, for lack of time")
        return
    try:
        ledgers.require_fork(trace)
        kept, _ = await ledgers.keep_ledger(
            measurement,
            trace,
            check["iteration"],
            check=check,
            share=LEDGER_SHARE if measurement.request.workflow else 1.0,
        )
    except (ledgers.Ended, ProbeFailed) as ended:
        result.ledger_after = LedgerSide(message=f"not measured: {ended}")
        return
    result.ledger_after = ledger_side(result.run_id, kept)
    if comparison.wrong_now is None:
        return
    located = bisect_steps.build_result(measurement, trace, check, kept)  # type: ignore[arg-type]
    result.causes = located.causes
    if result.outcome in ("not_fixed", "regressed") and result.files:
        gone = vanished(result.ledger_before, result.ledger_after)
        if gone:
            result.outcome = "improved_but_wrong"
            result.message += f" But what {gone} put in is gone."
    result.message += f" What is left: {located.message}"
    if located.causes:
        result.message += f" {_cause(located.causes[0])}"


def _cause(cause: Cause) -> str:
    place = f" at {cause.file}:{cause.line}" if cause.file else ""
    return f"Its cause ({cause.confidence}): {cause.code}{place}."


def _ruled_out(result: VerifyFixResult, comparison: Comparison) -> list[str]:
    """What the comparison excludes."""
    out: list[str] = []
    if (
        comparison.pairs
        and not comparison.blind_spots
        and not any(c.what in ("derivative", "start", "parameter") for c in result.changes)
    ):
        out.append("a changed objective: the derivative by differences is the same at the same parameter values")
    if (
        result.outcome == "fixed"
        and result.ledger_after
        and result.ledger_after.run_id
        and not result.ledger_after.jumps
    ):
        out.append("an error that is only balanced by another one: no launch line jumps above its noise")
    return out


async def _run_workflow(
    result: VerifyFixResult, measurement: Measurement[VerifyFixRequest], baseline: RecordedCheck, outcome: ProbeOutcome
) -> None:
    """The user's own command, before and after."""
    request = measurement.request
    full = not request.overrides
    before = run_health(baseline.output, baseline.trace, full_size=full)
    done, why = None, "it was not asked for"
    if result.status == "blocked":
        why = "the program does not run"
    elif request.forward:
        why = "a callable is no program with a training loop"
    elif request.workflow:
        done, why = await run_workflow(measurement, outcome)
    name = before.name if before else None
    after = run_health(done.output, done.trace, full_size=True, name=name) if done else None
    if after is None and not full:  # at least like with like, under the overrides
        after = run_health(outcome.output, outcome.trace, full_size=False, name=name)
    result.workflow = judge_workflow(request, measurement.interpreter.path, before, after, why)
    if not request.workflow and full:
        result.workflow.status = "skipped" if after is None else result.workflow.status


def _next(result: VerifyFixResult, request: VerifyFixRequest) -> NextCall | None:
    """What to call after this answer."""
    again = NextCall(
        tool=OPERATION, arguments={"baseline": request.baseline}, why="After the next edit: the same comparison."
    )
    target = {
        k: v
        for k, v in request.model_dump(exclude_defaults=True).items()
        if k not in ("baseline", "workflow", "engine", "iteration")
    }
    if result.status == "blocked":
        return next_calls.does_it_run(target)
    if result.status == "timeout":
        return next_calls.with_more_time(OPERATION, {"baseline": request.baseline}, request.timeout_s)
    if result.outcome == "fixed":
        return None
    if result.outcome in ("not_fixed", "improved_but_wrong", "regressed") and not result.causes:
        return NextCall(tool="bisect_steps", arguments=target, why="Finds the line that puts the error in.")
    if result.outcome == "inconclusive":
        return NextCall(tool="gradcheck_full_horizon", arguments=target, why="A check of the program as it is now.")
    return again

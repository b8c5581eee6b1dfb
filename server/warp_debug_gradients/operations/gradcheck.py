"""gradcheck_full_horizon: the consumed gradient against differences of the objective over the whole iteration."""

from __future__ import annotations

import math
import os
from typing import Any

from warp_debug_gradients.errors import EngineUnavailable, ProbeFailed, UsageError
from warp_debug_gradients.operations import explain
from warp_debug_gradients.operations.host_places import cut_place, tape_place, zeroing_place
from warp_debug_gradients.operations.iterations import choose_iterations, iteration_of, plan_of
from warp_debug_gradients.operations.measurement import Measurement, first_line, refuse_unusable, script_error
from warp_debug_gradients.operations.segments import cut_between
from warp_debug_gradients.records import Check, HorizonRow, Place, Trace, part, parts
from warp_debug_gradients.schemas import (
    CheckSummary,
    Consumed,
    GradcheckRequest,
    GradcheckResult,
    Gradient,
    Horizon,
    Signature,
    WarpGradcheck,
    Window,
    as_float,
)
from warp_debug_gradients.worker import OnProgress, ProbeOutcome
from warp_debug_gradients.workspace import Workspace

OPERATION = "gradcheck_full_horizon"
MUCH_FARTHER = 10.0  # times the error of the first wrong check: then the answer is about the farthest one
TRACE_SHARE = 0.4  # of the time: the trace stops itself there and the iterations seen so far are checked


async def gradcheck_full_horizon(
    request: GradcheckRequest, workspace: Workspace, on_progress: OnProgress | None = None
) -> GradcheckResult:
    """Traces the script, picks the iterations, measures them, and says what the numbers mean."""
    measurement = Measurement(OPERATION, request, workspace, on_progress)
    outcome = await measurement.trace(TRACE_SHARE)
    refuse_unusable(outcome, request)
    trace = outcome.trace
    if loaded := trace.get("loaded_files"):
        measurement.evidence.snapshot_sources(loaded)

    obstacle = _obstacle(measurement, outcome, trace)
    if obstacle:
        return measurement.finish(obstacle)

    chosen = choose_iterations(trace, request.iteration)
    engine = choose_engine(request.engine, trace)
    evaluated = await evaluate(measurement, trace, plan_of(trace, chosen), engine)
    return measurement.finish(build_result(measurement, trace, evaluated, engine))


async def evaluate(
    measurement: Measurement[Any],
    trace: Trace,
    plan: dict[str, Any],
    engine: str,
    *,
    share: float = 1.0,
    options: dict[str, Any] | None = None,
) -> ProbeOutcome:
    """The checks of a plan's iterations, by one engine. share: of the time that is left, where a probe measures."""
    if engine == "fork":
        extra: dict[str, Any] = {"options": options} if options else {}
        return await measurement.probe("evaluate", share=share, plan=plan, **extra)
    from warp_debug_gradients.operations.rerun import run_rerun_engine  # NumPy is loaded only where it is used

    return await run_rerun_engine(measurement, trace, plan["iterations"], options)


def choose_engine(requested: str, trace: Trace) -> str:
    """The engine that was asked for; `auto` forks where that is possible."""
    why = obstacle_to_fork(trace)
    if requested == "fork" and why:
        raise EngineUnavailable(f"The fork engine cannot be used: {why}.")
    if requested != "auto":
        return requested
    return "rerun" if why else "fork"


def obstacle_to_fork(trace: Trace) -> str | None:
    """Why a forked child would not do what the program does, and what to do instead."""
    if not hasattr(os, "fork"):
        return "this system has no fork. Use --engine rerun"
    if trace.get("uses_cuda"):
        return "the program uses CUDA, whose contexts do not survive a fork. Use --engine rerun, or --device cpu"
    if why := trace.get("unforkable"):
        return f"{why}. Use --engine rerun"
    return None


def build_result(measurement: Measurement[Any], trace: Trace, outcome: ProbeOutcome, engine: str) -> GradcheckResult:
    """The checks as the operation's result: the headline is the first that disagrees, else the first unsure one."""
    evaluated = outcome.evaluation
    checks = evaluated.get("checks") or []
    stopped = outcome.timed_out or evaluated.get("status") == "stopped"
    if not checks:
        if stopped:
            return _empty(measurement, trace, status="timeout", reason="time", message=explain.NO_TIME, engine=engine)
        detail = (evaluated.get("error") or {}).get("message") or outcome.death or "it reported no check"
        raise ProbeFailed(
            f"The evaluation process gave no check: {detail}. Its output is in {measurement.evidence.relative}; "
            "try --engine rerun, and report this with that folder."
        )
    headline = pick_headline(checks)
    if measurement.request.objective and "cannot be evaluated" in str(headline.get("message")):
        raise UsageError(f"{first_line(headline.get('message'))}. Use names that are known where backward is called.")
    stopped = stopped or headline.get("reason") == "time"
    unfinished = stopped and headline["verdict"] != "disagree"
    result = _empty(
        measurement,
        trace,
        status="timeout" if unfinished else "completed",
        reason=headline.get("reason") or ("time" if unfinished else None),
        message=explain.headline_message(headline, checks, trace),
        engine=evaluated.get("engine") or engine,
    )
    result.verdict = headline["verdict"]
    result.parameter = (headline.get("parameter") or {}).get("name")
    result.objective = (headline.get("objective") or {}).get("name")
    result.iteration = headline.get("iteration")
    result.horizon = _horizon(headline.get("horizon"))
    result.gradient = Gradient.model_validate(headline.get("gradient") or {})
    result.consumed = Consumed.model_validate(headline.get("consumed")) if headline.get("consumed") else None
    result.signature = Signature.model_validate(headline.get("signature")) if headline.get("signature") else None
    result.windows = [Window.model_validate(w) for w in headline.get("windows") or []]
    result.checks = [_summary(check) for check in checks]
    result.causes = explain.proven_causes(headline, trace, *places(measurement, headline, trace))
    result.ruled_out = explain.ruled_out(checks, headline, trace)
    result.blind_spots = explain.blind_spots(checks, trace, stopped)
    result.next = explain.next_call(result, measurement.request, trace)
    return result


def places(measurement: Measurement[Any], check: Check, trace: Trace) -> tuple[Place | None, Place | None]:
    """Where the chain is cut if it is: where the tape was emptied as it recorded, where a chain of tapes hands its adjoint
    on, or what the source shows; and, from the source, where the gradient is zeroed before its read."""
    horizon, workspace = check.get("horizon") or {}, measurement.workspace
    item = iteration_of(trace, check["iteration"])
    backward = next((w for w in check.get("windows") or [] if w.get("file")), horizon.get("to"))
    read = (check.get("consumed") or {}).get("read") or {}
    plan = part(item, "plan")
    handed = len(parts(plan, "objective_calls")) == 1 < len(parts(plan, "backward_calls"))
    cut = item.get("tape_emptied") or cut_between(check, trace) or (horizon.get("to") if handed else None)
    return (
        cut or cut_place(workspace, tape_place(workspace, backward), int(horizon.get("windows") or 1)),
        zeroing_place(workspace, horizon.get("to"), read),
    )


def pick_headline(checks: list[Check]) -> Check:
    """The check that the answer is about: the first wrong one, unless its error is small beside that of another.

    Where an earlier one is right, the fault needs a history, and the first that shows it tells how much of one.
    """
    for verdict in ("disagree", "inconclusive"):
        found = [check for check in checks if check["verdict"] == verdict]
        if found:
            first, farthest = found[0], max(found, key=_error)
            begins = all(check["verdict"] != "agree" for check in checks[: checks.index(first)])
            return farthest if begins and _error(farthest) > MUCH_FARTHER * _error(first) else first
    return checks[0]


def _error(check: Check) -> float:
    """The relative error of a wrong gradient; 0 where there is none to compare."""
    error = as_float((check.get("gradient") or {}).get("relative_error"))
    return error if check["verdict"] == "disagree" and not math.isnan(error) else 0.0


def _obstacle(measurement: Measurement[Any], outcome: ProbeOutcome, trace: Trace) -> GradcheckResult | None:
    """The result where there is nothing to check: the script fails, or has no gradient that is read."""
    if trace.get("status") == "failed" or (not trace and not outcome.timed_out):
        error = script_error(outcome, measurement)
        message = f"The program does not run: {error.type}: {first_line(error.message)}. No gradient was measured."
        result = _empty(measurement, trace, status="blocked", reason="does_not_run", message=message)
        result.error = error
    elif trace.get("iterations"):
        return None
    elif trace.get("status") == "stopped" or outcome.timed_out:
        result = _empty(
            measurement,
            trace,
            status="timeout",
            reason="time",
            message=explain.no_iteration_in_time(trace, outcome.output),
        )
    else:
        reason, message = explain.nothing_to_check(trace)
        result = _empty(measurement, trace, status="completed", reason=reason, message=message)
        result.verdict = "inconclusive"
    result.next = explain.next_call(result, measurement.request, trace)
    return result


def _empty(
    measurement: Measurement[Any],
    trace: Trace,
    *,
    status: Any,
    reason: str | None,
    message: str,
    engine: str = "",
) -> GradcheckResult:
    return GradcheckResult(
        **measurement.base(),
        status=status,
        reason=reason,
        message=message,
        engine=engine or None,
        warp_version=trace.get("warp_version"),
        device=trace.get("device"),
        notes=trace.get("notes") or [],
        warp_gradcheck=WarpGradcheck.model_validate(trace.get("gradcheck")) if trace.get("gradcheck") else None,
    )


def _horizon(found: HorizonRow | None) -> Horizon | None:
    if not found:
        return None
    return Horizon.model_validate({**found, "start": found.get("from"), "end": found.get("to")})


def _summary(check: Check) -> CheckSummary:
    gradient = check.get("gradient") or {}
    numbers = {k: gradient.get(k) for k in ("autodiff", "finite_difference", "error", "relative_error", "size")}
    names = {k: part(check, k).get("name") for k in ("parameter", "objective")}
    return CheckSummary.model_validate({**check, **numbers, **names})

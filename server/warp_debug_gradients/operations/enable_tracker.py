"""enable_tracker: is anything overwritten that the backward pass needs; by content, and by Warp's own tracker."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from warp_debug_gradients.errors import ProbeFailed
from warp_debug_gradients.operations import ledger as ledgers
from warp_debug_gradients.operations.ledger_causes import ledger_causes
from warp_debug_gradients.operations.ledger_evidence import restored_text
from warp_debug_gradients.operations.measurement import Measurement
from warp_debug_gradients.records import Check, Ledger, Trace, part, parts
from warp_debug_gradients.render.text import moved_by, percent
from warp_debug_gradients.schemas import (
    EnableTrackerRequest,
    EnableTrackerResult,
    NextCall,
    Overwrite,
    TrackerWarning,
)
from warp_debug_gradients.worker import OnProgress, ProbeOutcome
from warp_debug_gradients.workspace import Workspace

Found = TypeVar("Found")
OPERATION = "enable_tracker"
LARGE_PROGRAM = 1 << 30  # bytes: the two instruments run the program one after the other, not side by side
WRITES = {"overwrite", "inplace_muldiv", "accumulator_reset", "host_round_trip", "unrecorded_operation"}
CODES = WRITES | {"double_count", "missing_requires_grad", "backward_disabled"}  # what an answer about arrays may name


async def enable_tracker(
    request: EnableTrackerRequest, workspace: Workspace, on_progress: OnProgress | None = None
) -> EnableTrackerResult:
    """Traces the script, then runs both instruments side by side."""
    measurement = Measurement(OPERATION, request, workspace, on_progress)
    try:
        trace = await ledgers.traced(measurement)
    except ledgers.Ended as ended:
        return measurement.finish(_ended(measurement, ended))
    iteration = request.iteration if request.iteration is not None else parts(trace, "iterations")[0].get("index", 0)
    turns = asyncio.Semaphore(1 if (trace.get("memory_bytes") or 0) > LARGE_PROGRAM else 2)
    kept, tracked = await asyncio.gather(
        _in_turn(turns, _content(measurement, trace, iteration)),
        _in_turn(turns, _tracker(measurement)),
        return_exceptions=True,
    )
    for failure in (kept, tracked):
        if isinstance(failure, BaseException) and not isinstance(failure, ledgers.Ended):
            raise failure
    assert not isinstance(tracked, BaseException)
    if isinstance(kept, ledgers.Ended):
        result = _ended(measurement, kept)
    else:
        assert not isinstance(kept, BaseException)
        result = build_result(measurement, trace, kept)
        if result.exit_code == 1 and not any(cause.confidence == "proven" for cause in result.causes):
            await _hold_to_check(measurement, trace, result, kept)
    add_tracker(result, tracked)
    if result.message:
        result.message += _tracker_sentence(result)
    return measurement.finish(result)


async def _in_turn(turns: asyncio.Semaphore, instrument: Coroutine[Any, Any, Found]) -> Found:
    async with turns:
        return await instrument


async def _content(measurement: Measurement[EnableTrackerRequest], trace: Trace, iteration: int) -> Ledger:
    ledgers.require_fork(trace)
    kept, _ = await ledgers.keep_ledger(measurement, trace, iteration, isolate=False)
    return kept


async def _tracker(measurement: Measurement[EnableTrackerRequest]) -> ProbeOutcome:
    """Warp's tracker rebuilds every kernel: in a cache of this run's own, so that the user's stays as it was."""
    cache = str(measurement.evidence.folder / "kernel_cache")
    return await measurement.probe("warp_tracker", name="tracker", kernel_cache=cache)


async def _hold_to_check(
    measurement: Measurement[EnableTrackerRequest], trace: Trace, result: EnableTrackerResult, kept: Ledger
) -> None:
    """A finding that nothing proves counts only where differences settle: on a kink both gradients may be right."""
    try:
        check = await ledgers.quick_check(measurement, trace, result.iteration)
    except (ledgers.Ended, ProbeFailed) as missing:
        result.notes.append(f"Whether differences settle at this point was not measured: {missing}")
        return
    if check["verdict"] == "inconclusive":
        undecided(result, check, kept)
    result.next = next_call(result, measurement.request)


def undecided(result: EnableTrackerResult, check: Check, kept: Ledger) -> None:
    """Takes back what the differences do not carry."""
    for row in result.overwrites:
        row.harmful = None if row.harmful else row.harmful
    for cause in result.causes:
        cause.confidence = "possible"
    result.reason = check.get("reason") or "inconclusive"
    said = str(check.get("message") or "the differences do not settle").rstrip(".")
    result.message = f"Not decided whether the gradient is right: {said}. {content_message(result, kept)}"


def build_result(measurement: Measurement[EnableTrackerRequest], trace: Trace, kept: Ledger) -> EnableTrackerResult:
    """The content check's part of the answer."""
    found = ledger_causes(kept, ledgers.constructs_of(measurement, trace.get("loaded_files") or []))
    result = EnableTrackerResult(
        **measurement.base(),
        **ledgers.common(trace),
        status="completed",
        message="",
        parameter=(kept.get("parameter") or {}).get("name"),
        objective=(kept.get("objective") or {}).get("name"),
        iteration=kept.get("iteration"),
        overwrites=ledgers.overwrites(kept),
        observations=ledgers.observations(kept),
        what_if=ledgers.what_if(kept),
        causes=[cause for cause in found if cause.code in CODES],
    )
    result.message = content_message(result, kept)
    harmless = [o for o in result.overwrites if o.harmful is False]
    if harmless:
        result.ruled_out.append(f"harm by {len(harmless)} other overwrite(s): the gradient does not depend on them")
    sampled = str(kept.get("message") or "")
    if sampled:
        result.sampled = f"{kept.get('ops_recorded', 0):,} of {kept.get('ops', 0):,} operations looked at singly"
        result.notes.append(f"{sampled}.")
    if meant := kept.get("meant"):
        result.notes.append(meant)
    if not result.overwrites:
        how = "none changes the gradient beyond its noise" if sampled else "every read was intact"
        if not sampled or kept.get("flat"):
            result.ruled_out.append(f"overwritten inputs on the tape of iteration {result.iteration}: {how}")
    result.blind_spots = [
        f"iterations other than {result.iteration}, and backward calls other than {kept.get('backward_call')}"
    ]
    result.next = next_call(result, measurement.request)
    return result


def content_message(result: EnableTrackerResult, kept: Ledger) -> str:
    """The answer of the content check, in a sentence or two."""
    harmful = [o for o in result.overwrites if o.harmful]
    unsure = [o for o in result.overwrites if o.harmful is None]
    if harmful:
        plural = "s" if len(harmful) > 1 else ""
        what = kept.get("what_if") or {}
        proof = f" {restored_text(what)[0].upper()}{restored_text(what)[1:]}." if what else ""
        return f"{len(harmful)} harmful overwrite{plural}: {in_words(harmful[0])}.{proof}"
    if unsure:
        return f"{len(unsure)} overwrite(s), whose harm is not decided: {in_words(unsure[0])}."
    harmless = f" {len(result.overwrites)} overwrite(s) are harmless." if result.overwrites else ""
    if meant := kept.get("meant"):
        return f"No harmful overwrite in iteration {result.iteration}. {meant}"
    numbers = f"AD = {_number(kept.get('autodiff'))}, FD = {_number(kept.get('finite_difference'))} along one direction"
    unknown = next((j for j in kept.get("jumps") or [] if j.get("significant") and j.get("kind") == "unrecorded"), None)
    if unknown:
        return (
            f"The tape does not know of a write that changes the derivative: {unknown.get('kernel') or 'a write'} at "
            f"{unknown.get('file')}:{unknown.get('line')}, {percent(unknown.get('share'))} of it ({numbers}).{harmless}"
        )
    jump = next((j for j in kept.get("jumps") or [] if j.get("significant")), None)
    still = (
        f" An error comes in that is no overwrite: at {jump.get('file')}:{jump.get('line')}, {percent(jump.get('share'))} of the "
        f"derivative ({numbers}); bisect_steps looks for its cause."
        if jump
        else ""
    )
    if kept.get("message"):  # a long tape, of which a part was recorded singly
        return (
            f"No overwrite found in iteration {result.iteration} that changes the gradient by more than its noise; the tape "
            f"is too long to compare what every adjoint reads.{harmless}{still}"
        )
    return (
        f"No harmful overwrite in iteration {result.iteration}: what the adjoints need had the same content when they "
        f"read it.{harmless}{still}"
    )


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, (int, float)) else str(value)


def in_words(row: Overwrite) -> str:
    """One overwrite: victim, writer, reader, how far."""
    reader = row.reader
    read_by = (reader.kernel if reader else None) or "its reader"
    read_at = f" ({reader.file}:{reader.line})" if reader and reader.file else ""
    change = row.change
    moved = f", moved by {moved_by(change.relative, change.max_abs)}" if change and change.relative is not None else ""
    allocated = f" ({row.allocated.file}:{row.allocated.line})" if row.allocated else ""
    if row.how == "in_kernel":
        return f"{read_by}{read_at} overwrites its own input {row.variable}{allocated}{moved}"
    writer = row.writer
    by = (writer.what if writer else None) or "something"
    by_at = f" ({writer.file}:{writer.line})" if writer and writer.file else ""
    return f"{row.variable}{allocated} is overwritten by {by}{by_at} before the adjoint of {read_by}{read_at} reads it{moved}"


def add_tracker(result: EnableTrackerResult, outcome: ProbeOutcome) -> None:
    """Warp's own part, or why it is missing."""
    found = outcome.result or {}
    if "warnings" not in found:
        why = part(found, "error").get("message") or outcome.death or "it gave no result"
        result.notes.append(f"Warp's own tracker was not heard to the end: {why}.")
        return
    result.tracker_available = found.get("available")
    result.warnings = [TrackerWarning.model_validate(w) for w in parts(found, "warnings")]
    result.tracker_blind_spots = list(found.get("blind_spots") or [])
    if found.get("status") == "stopped":
        result.notes.append(
            "Warp's own tracker was stopped when the time ran out: its list covers the run up to there."
        )


def _tracker_sentence(result: EnableTrackerResult) -> str:
    if result.tracker_available is None:
        return ""
    if not result.tracker_available:
        return " This Warp has no tracker of its own."
    live = [w for w in result.warnings if not w.stale]
    stale = len(result.warnings) - len(live)
    old = f" ({stale} more are stale)" if stale else ""
    if live:
        return f" Warp's own tracker warns at {len(live)} place(s){old}."
    return f" Warp's own tracker is silent{old}, which proves little."


def next_call(result: EnableTrackerResult, request: EnableTrackerRequest) -> NextCall:
    """After a finding its repair, else the search goes on."""
    arguments = request.model_dump(exclude_defaults=True)
    if result.exit_code == 1:
        same = {**arguments, "iteration": result.iteration}
        return NextCall(
            tool="gradcheck_full_horizon", arguments=same, why="After the repair: the gradient has to agree."
        )
    return NextCall(
        tool="bisect_steps", arguments=arguments, why="If the gradient is wrong all the same: which launch puts it in."
    )


def _ended(measurement: Measurement[EnableTrackerRequest], ended: ledgers.Ended) -> EnableTrackerResult:
    result = EnableTrackerResult(**measurement.base(), **ended.fields)
    result.next = ledgers.ended_next(result, measurement.request, OPERATION)
    return result

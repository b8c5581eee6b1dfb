"""bisect_steps: where the gradient goes wrong; by the ledger of one tape, or by the value of a knob."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

from warp_debug_gradients.errors import UsageError
from warp_debug_gradients.operations import explain, isolated, segments
from warp_debug_gradients.operations import ledger as ledgers
from warp_debug_gradients.operations.agreement import beside_a_fault, effect_of
from warp_debug_gradients.operations.edited_gradient import added_right
from warp_debug_gradients.operations.gradcheck import places
from warp_debug_gradients.operations.host_places import (
    UnrecordedPlace,
    line_at,
    swap_place,
    tape_place,
    unrecorded_writer,
)
from warp_debug_gradients.operations.iterations import iteration_of
from warp_debug_gradients.operations.knob import run_knob
from warp_debug_gradients.operations.ledger_causes import Context, is_handed_on, ledger_causes
from warp_debug_gradients.operations.ledger_evidence import (
    clobbered_text,
    restored_text,
    size_of,
    summation_share,
    summed_text,
)
from warp_debug_gradients.operations.measurement import Measurement
from warp_debug_gradients.records import Check, Ledger, OverwriteRow, Place, Trace
from warp_debug_gradients.render.text import percent
from warp_debug_gradients.schemas import (
    BisectStepsRequest,
    BisectStepsResult,
    BornNonFinite,
    Cause,
    Gradient,
    Horizon,
    Jump,
    NextCall,
    Term,
    as_float,
)
from warp_debug_gradients.worker import OnProgress
from warp_debug_gradients.workspace import Workspace

OPERATION = "bisect_steps"
MARGINS = 0.02  # a book whose terms leave this part of the derivative over does not balance


async def bisect_steps(
    request: BisectStepsRequest, workspace: Workspace, on_progress: OnProgress | None = None
) -> BisectStepsResult:
    """Traces the script, finds the iteration that disagrees, and keeps the ledger of its backward call."""
    if request.method != "ledger" and not request.knob:
        raise UsageError(
            f"method={request.method!r} needs knob, a module constant such as 'train.NUM_STEPS'. run_repro lists them."
        )
    if request.method == "ledger" and request.knob:
        request = request.model_copy(update={"method": "knob"})
    if request.knob in request.overrides:
        raise UsageError(f"{request.knob} is both the knob and an override. Drop it from the overrides.")
    measurement = Measurement(OPERATION, request, workspace, on_progress)
    try:
        if request.method == "ledger":
            result = await _ledger(measurement)
        else:
            result = await run_knob(measurement)
    except ledgers.Ended as ended:
        result = BisectStepsResult(**measurement.base(), method=request.method, **ended.fields)
        result.next = ledgers.ended_next(result, request, OPERATION)
    return measurement.finish(result)


async def _ledger(measurement: Measurement[BisectStepsRequest]) -> BisectStepsResult:
    trace = await ledgers.traced(measurement)
    ledgers.require_fork(trace)
    check = await ledgers.quick_check(measurement, trace, measurement.request.iteration)
    try:
        kept, _ = await ledgers.keep_ledger(measurement, trace, check["iteration"], check=check)
    except ledgers.Ended as ended:
        if ended.fields.get("status") != "timeout":
            raise
        return _check_alone(measurement, trace, check, ended)
    result = build_result(measurement, trace, check, kept)
    _draw(measurement, result, kept)
    return result


def _check_alone(
    measurement: Measurement[BisectStepsRequest], trace: Trace, check: Check, ended: ledgers.Ended
) -> BisectStepsResult:
    """What the check says, where the time did not allow the ledger."""
    result = build_result(measurement, trace, check, {})
    result.status, result.reason, result.causes, result.ruled_out = "timeout", "time", [], []
    result.message = f"{explain.headline_message(check, [check], trace)} {ended}"
    result.next = ledgers.ended_next(result, measurement.request, OPERATION)
    return result


def build_result(measurement: Measurement[Any], trace: Trace, check: Check, kept: Ledger) -> BisectStepsResult:
    """The ledger and the check behind it, as the operation's result."""
    horizon = check.get("horizon") or {}
    result = BisectStepsResult(
        **measurement.base(),
        **ledgers.common(trace),
        status="completed",
        message="",
        verdict=check["verdict"],
        reason=None,
        parameter=(kept.get("parameter") or check.get("parameter") or {}).get("name"),
        objective=(check.get("objective") or {}).get("name"),
        iteration=check.get("iteration"),
        horizon=Horizon.model_validate({**horizon, "start": horizon.get("from"), "end": horizon.get("to")}),
        gradient=Gradient.model_validate(check.get("gradient") or {}),
        backward_call=kept.get("backward_call"),
        step=kept.get("step"),
        jumps=[Jump.model_validate(j) for j in kept.get("jumps") or []],
        seed=Term.model_validate(kept.get("seed")) if kept.get("seed") else None,
        stale=[Term.model_validate(t) for t in kept.get("stale") or []],
        truncated=[Term.model_validate(t) for t in kept.get("truncated") or []],
        flat=kept.get("flat"),
        balance=kept.get("balance"),
        nonfinite=BornNonFinite.model_validate(kept.get("nonfinite")) if kept.get("nonfinite") else None,
        overwrites=ledgers.overwrites(kept),
        what_if=ledgers.what_if(kept),
        observations=ledgers.observations(kept),
        isolated=isolated.isolated(kept),
        warp_gradcheck_tape=isolated.gradcheck_tape(kept),
    )
    constructs = ledgers.constructs_of(measurement, trace.get("loaded_files") or [])
    backward = backward_place(check, kept.get("backward_call"))
    tape = tape_place(measurement.workspace, backward)
    unrecorded = _unrecorded(measurement, tape, backward)
    windows = int(horizon.get("windows") or 1)
    cut, zeroed = places(measurement, check, trace)
    iteration = iteration_of(trace, check["iteration"])
    context = Context(
        tape=tape,
        cut=cut,
        backward=backward,
        inside=covers_all(check, kept),
        unrecorded=unrecorded,
        swap=lambda place: swap_place(measurement.workspace, place),
        verdict=check["verdict"],
        windows=windows,
        parted=explain.is_truncated(check),
        same_tape=windows > int(iteration.get("tapes") or windows),
        warp=result.warp_version,
        error=whole_error(check),
        seeded=segments.seeded_places(check, trace, kept.get("backward_call")),
        cut_before=segments.is_cut_before(check, trace, kept.get("backward_call")),
    )
    causes = ledger_causes(kept, constructs, context)
    if check.get("reason") == segments.IN_LOSS:  # the book is kept against losses that are no objective
        causes = []
    result.causes = joined(causes, explain.proven_causes(check, trace, cut, zeroed))
    if check["verdict"] == "inconclusive":
        result.causes = [cause for cause in result.causes if cause.code != "warp_defect"]
        for cause in result.causes:  # a function's own adjoint is judged by its own differences, not by the objective's
            alone = cause.code == "custom_gradient" and cause.confidence == "proven"
            cause.confidence = "likely" if alone else "possible"
    entering = [t for t in kept.get("truncated") or [] if t.get("significant")]
    handed_on = check["verdict"] == "agree" or is_handed_on(entering, windows, context.error)
    if windows > 1 and handed_on and result.truncated:
        names = ", ".join(t.variable or "?" for t in result.truncated[:4] if t.significant)
        if names:
            whole = "agrees" if check["verdict"] == "agree" else "is off by far less"
            result.notes.append(f"{names}: what the tape hands on to another tape of the iteration; the whole {whole}.")
        result.truncated = []
    result.reason = reason_of(result, check)
    result.message = ledger_message(result, check, sums_in_words(kept), stretches_in_words(kept))
    result.ruled_out = ruled_out(result)
    result.blind_spots = blind_spots(result)
    if said := kept.get("message"):
        result.notes.append(f"{said}.")
    if meant := kept.get("meant"):
        result.notes.append(meant)
    result.next = next_call(result, measurement.request)
    return result


def covers_all(check: Check, kept: Ledger) -> bool | None:
    """Whether the derivative over the tape's own window is that over the whole iteration: nothing before it counts."""
    call = kept.get("backward_call")
    window = next((w for w in check.get("windows") or [] if w.get("backward_call") == call), None)
    if window is None or window.get("finite_difference") is None or kept.get("finite_difference") is None:
        return None
    own, whole = as_float(window.get("finite_difference")), as_float(kept.get("finite_difference"))
    error = 3 * abs(as_float(window.get("error") or 0.0)) + MARGINS * abs(whole)
    return abs(own - whole) <= error if math.isfinite(own) and math.isfinite(whole) else None


def whole_error(check: Check) -> float | None:
    """The relative error of the gradient over all backward calls of the iteration."""
    value = (check.get("gradient") or {}).get("relative_error")
    number = as_float(value) if value is not None else math.nan
    return number if math.isfinite(number) else None


def _unrecorded(
    measurement: Measurement[Any], tape: Place | None, backward: Place | None
) -> Callable[[str], UnrecordedPlace | None]:
    """Finds the statement between tape and backward that writes a variable unrecorded, from the source."""

    def find(variable: str) -> UnrecordedPlace | None:
        start, end = line_at(measurement.workspace, tape), line_at(measurement.workspace, backward)
        if start is None or end is None or start.file != end.file:
            return None
        found = unrecorded_writer(start.source, start.line, end.line, variable)
        return {"file": start.file, "line": found[0], "host": found[1]} if found else None

    return find


def backward_place(check: Check, call: int | None) -> Place | None:
    """The line of the backward call that the ledger is about."""
    window = next((w for w in check.get("windows") or [] if w.get("backward_call") == call and w.get("file")), None)
    return window or (check.get("horizon") or {}).get("to")


def joined(ledger: list[Cause], check: list[Cause]) -> list[Cause]:
    """The ledger's causes, and those of the check that the ledger does not name itself.

    A backward call that repeats another comes before what the ledger of one call can only suspect.
    """
    known = {cause.code: cause for cause in ledger}
    for cause in [c for c in check if c.code == "truncation" and c.code in known]:
        found = known[cause.code]  # the check tells which call it is, the ledger what it amounts to
        same = not cause.variables or bool(set(cause.variables) & set(found.variables))
        found.evidence = [*cause.evidence, *(found.evidence if same else [])]
        found.variables, found.repair = cause.variables or found.variables, cause.repair
    proven = [cause for cause in ledger if cause.confidence == "proven"]
    twice = [c for c in check if c.code == "double_count" and c.code not in {p.code for p in proven}]
    rest = [c for c in ledger if c.confidence != "proven" and c.code not in {t.code for t in twice}]
    named = {cause.code for cause in [*proven, *twice, *rest]}
    return [*proven, *twice, *rest, *(cause for cause in check if cause.code not in named)]


def reason_of(result: BisectStepsResult, check: Check) -> str | None:
    """Why nothing is said; None where something is."""
    if check["verdict"] == "inconclusive":
        return check.get("reason") or "inconclusive"
    return "not_located" if check["verdict"] == "disagree" and not result.faults else None


def stretches_in_words(kept: Ledger) -> str:
    """The stretches of a long tape that put an error in and were not recorded singly; empty where there is none."""
    stretches = [s for s in kept.get("stretches") or [] if s.get("significant")]
    found = sorted(stretches, key=lambda s: -size_of(s.get("share")))
    if not found:
        return ""
    first = found[0]
    others = f", and {len(found) - 1} other stretches" if len(found) > 1 else ""
    return (
        f"Operations {first['first_op']:,} to {first['last_op']:,} of {kept.get('ops', 0):,} put in {percent(first.get('share'))} of "
        f"the derivative (noise {percent(first.get('noise'))}){others}; they were not recorded singly."
    )


def sums_in_words(kept: Ledger) -> str:
    """The round-off of long sums of contributions, where it counts; else empty."""
    found = kept.get("summation")
    if not found or not summation_share(kept):
        return ""
    text = summed_text(found)
    return f"{text[0].upper()}{text[1:]}."


def ledger_message(result: BisectStepsResult, check: Check, sums: str = "", stretches: str = "") -> str:
    """Which line puts the error in, with its share; or that none does.

    sums: what long sums of contributions put in. stretches: what was not recorded singly.
    """
    where = f"iteration {result.iteration}"
    parts: list[str] = []
    if result.nonfinite:
        born = result.nonfinite
        parts.append(
            f"The first non-finite adjoint comes from {born.kernel or 'an op'} at {born.file}:{born.line} (op {born.op}), "
            f"in {born.variable}."
        )
    jumps = [j for j in result.jumps if j.significant]
    if jumps:
        parts.append(f"{_who(jumps[0])} of the derivative of {result.parameter}{_over(jumps[0])} in {where}.")
        if len(jumps) > 1:
            others = ", ".join(f"{place_of(j)} {percent(j.share)}" for j in jumps[1:3])
            parts.append(f"Also: {others}.")
    harmful = [o for o in result.overwrites if o.harmful]
    if harmful and not jumps:
        parts.append(f"{clobbered_text(cast(OverwriteRow, harmful[0].model_dump()))}.")
    if result.what_if and harmful:
        text = restored_text(result.what_if.model_dump())
        parts.append(f"{text[0].upper()}{text[1:]}.")
    parts += _terms(result)
    if sums:
        parts.append(sums)
    if stretches:
        parts.append(stretches)
    if parts and check["verdict"] == "inconclusive":
        said = str(check.get("message") or "the differences do not settle").rstrip(".")
        return f"Not decided: {said}. What stands out nevertheless: {' '.join(parts)}"
    if parts and check["verdict"] == "agree":
        room = beside_a_fault(check.get("gradient") or {}, effect_of(result))
        return f"The gradient of {result.parameter} agrees with differences in {where}. {room}: {' '.join(parts)}"
    if parts:
        return " ".join(parts)
    if check["verdict"] == "agree":
        return (
            f"Nothing to find: the gradient of {result.parameter} agrees in {where}, and no launch jumps above its noise."
            f"{explain.is_zero(check)}"
        )
    if check["verdict"] == "disagree":
        if result.causes:
            first = result.causes[0].evidence[0]
            return f"No launch on the tape of {where} jumps, but {first}."
        if added_right(check):
            added = (
                f"what its backward calls add is right ({as_float(check.get('contributed')):.6g} along one direction)"
            )
            return f"No launch on the tape of {where} jumps, and {added}: the update uses another gradient."
        return (
            f"The gradient disagrees in {where}, but no launch on the tape of backward call {result.backward_call} jumps: "
            "the error comes in outside of it (an update that reads another gradient, another tape, or the seed)."
        )
    said = str(check.get("message") or "the differences do not settle").rstrip(".")
    return f"Nothing stands out in {where}; the check itself is not decided: {said}."


def place_of(jump: Jump) -> str:
    """The launch line; what happened where there is none."""
    called = f" (called from {jump.via.file}:{jump.via.line})" if jump.via else ""
    return f"{jump.file}:{jump.line}{called}" if jump.file else (jump.kernel or "an unknown place")


def _who(jump: Jump) -> str:
    name = f" ({jump.kernel})" if jump.kernel and jump.file else ""
    if jump.kind == "lost":
        lost = ", ".join(a.variable for a in jump.lost if a.variable) or "an array without gradient buffer"
        return f"{place_of(jump)}{name} loses (in {lost}) {percent(jump.share)}"
    off = ", which the tape does not record," if jump.kind == "unrecorded" else ""
    return f"{place_of(jump)}{name}{off} puts in {percent(jump.share)}"


def _over(jump: Jump) -> str:
    ops = f" over {jump.ops} ops" if (jump.ops or 0) > 1 else ""
    return f"{ops} (noise {percent(jump.noise)})"


def _terms(result: BisectStepsResult) -> list[str]:
    parts: list[str] = []
    if result.seed and result.seed.significant:
        parts.append(f"The seed of backward is off by {percent(result.seed.share)} of the derivative.")
    for name, terms in (
        ("stale gradients left from before backward make up", result.stale),
        ("what happened before the tape, through", result.truncated),
    ):
        significant = [t for t in terms if t.significant]
        if significant:
            variables = ", ".join(t.variable or "?" for t in significant[:3])
            shares = ", ".join(percent(t.share) for t in significant[:3])
            if terms is result.stale:
                parts.append(f"{variables}: {name} {shares} of the derivative.")
            elif any(cause.code == "truncation" for cause in result.causes):
                parts.append(f"The tape misses {name} {variables}: {shares} of the derivative (truncation).")
            else:
                parts.append(f"No recorded operation made {variables}, which carries {shares} of the derivative.")
    return parts


def ruled_out(result: BisectStepsResult) -> list[str]:
    """What the book excludes."""
    out: list[str] = []
    balanced = result.balance is not None and not isinstance(result.balance, str) and abs(result.balance) <= MARGINS
    quiet = [j for j in result.jumps if j.significant is False]
    if balanced and quiet and not result.nonfinite:
        most = max((abs(j.share) for j in quiet if isinstance(j.share, float)), default=0.0)
        out.append(f"{len(quiet)} other launch line(s): none puts in more than {percent(most)}, within its noise")
    if result.seed and result.seed.significant is False:
        out.append(f"a wrong seed: it misses the derivative by {percent(result.seed.share)}, within its noise")
    if not any(o.harmful for o in result.overwrites):
        out.append("overwritten inputs: the adjoints read what the forward pass read, or do not need it")
    return out


def blind_spots(result: BisectStepsResult) -> list[str]:
    """What the ledger did not look at."""
    spots = [f"iterations other than {result.iteration}, and backward calls other than {result.backward_call}"]
    spots.append("errors that cancel along the one direction looked at")
    if isinstance(result.balance, float) and abs(result.balance) > MARGINS:
        spots.append(f"{percent(result.balance)} of the derivative is in no term: the book does not balance")
    return spots


def next_call(result: BisectStepsResult, request: BisectStepsRequest) -> NextCall | None:
    """After the repair the same check; without a finding another look."""
    arguments = request.model_dump(exclude_defaults=True, exclude={"method", "knob", "values"})
    if result.verdict == "agree" and not result.faults:
        return None
    if result.causes:
        same = {**arguments, "iteration": result.iteration}
        why = f"After the repair ({result.causes[0].code}): the gradient has to agree."
        return NextCall(tool="gradcheck_full_horizon", arguments=same, why=why)
    return NextCall(
        tool="gradcheck_full_horizon", arguments=arguments, why="More directions and windows than the quick check here."
    )


def _draw(measurement: Measurement[BisectStepsRequest], result: BisectStepsResult, kept: Ledger) -> None:
    """The picture; a result does not fail for want of one."""
    from warp_debug_gradients.operations.picture import draw_ledger

    path = measurement.evidence.folder / "ledger.png"
    try:
        draw_ledger(kept, path)
        result.picture = measurement.workspace.relative(path)
    except ImportError:
        result.notes.append("No picture: matplotlib is not installed beside the server.")
    except Exception as error:
        result.notes.append(f"No picture: {type(error).__name__}: {error}.")

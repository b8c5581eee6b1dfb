"""What enable_tracker and bisect_steps share: trace, a quick check that finds the place, the ledger of one backward call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from warp_debug_gradients.errors import ProbeFailed
from warp_debug_gradients.limits import ledger_bytes
from warp_debug_gradients.metrics import printed_values
from warp_debug_gradients.operations import explain, next_calls
from warp_debug_gradients.operations.constructs import Construct, find_constructs, imported_calls
from warp_debug_gradients.operations.gradcheck import choose_engine, pick_headline
from warp_debug_gradients.operations.host_places import numpy_write
from warp_debug_gradients.operations.iterations import choose_iterations, plan_of
from warp_debug_gradients.operations.meant import as_meant
from warp_debug_gradients.operations.measurement import Measurement, first_line, refuse_unusable, script_error
from warp_debug_gradients.records import Check, JumpRow, Ledger, Place, Trace, WriterRow, parts
from warp_debug_gradients.schemas import NextCall, Observation, Overwrite, Result, Target, WhatIf, as_float
from warp_debug_gradients.worker import ProbeOutcome
from warp_debug_gradients.workspace import Workspace

TRACE_SHARE = 0.5
SAME_AD = 0.01  # of FD: two measurements of one derivative
QUICK = {
    "directions": 1,
    "elements": 0,
    "windows": 2,
    "horizons": 0,
}  # options of the check that only looks for the place
SIGNS_OF_CUDA = (
    "The ledger forks the program, which CUDA contexts do not survive. Run it on the CPU (device='cpu'): a wrong "
    "adjoint is wrong there, too."
)


class Ended(Exception):
    """The operation's answer is there already: blocked, out of time, or nothing to look into."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(fields.get("message"))
        self.fields = fields


async def traced(measurement: Measurement[Any]) -> Trace:
    """The trace of a program that has something to look into; else `Ended`."""
    outcome = await measurement.trace(TRACE_SHARE)
    refuse_unusable(outcome, measurement.request)
    trace = outcome.trace
    if trace:
        trace["printed"] = printed_values(outcome.output)
    if loaded := trace.get("loaded_files"):
        measurement.evidence.snapshot_sources(loaded)
    if trace.get("status") == "failed" or (not trace and not outcome.timed_out):
        error = script_error(outcome, measurement)
        raise Ended(
            status="blocked",
            reason="does_not_run",
            message=f"The program does not run: {error.type}: {first_line(error.message)}. Nothing was measured.",
            error=error,
            **common(trace),
        )
    if not trace.get("iterations"):
        if trace.get("status") == "stopped" or outcome.timed_out:
            message = explain.no_iteration_in_time(trace, outcome.output)
            raise Ended(status="timeout", reason="time", message=message, **common(trace))
        reason, message = explain.nothing_to_check(trace)
        raise Ended(status="completed", reason=reason, message=message, **common(trace))
    return trace


def require_fork(trace: Trace) -> None:
    """The ledger is kept in forked children."""
    if choose_engine("auto", trace) != "fork":
        raise Ended(status="completed", reason="needs_fork", message=why_no_fork(trace), **common(trace))


def why_no_fork(trace: Trace) -> str:
    """What stands in the way of a fork, for those that have no other way."""
    why = trace.get("unforkable")
    if why and not trace.get("uses_cuda"):
        return f"The ledger forks the program, and {why}. gradcheck_full_horizon measures it by runs of its own."
    return SIGNS_OF_CUDA


async def quick_check(measurement: Measurement[Any], trace: Trace, iteration: int | None, share: float = 0.4) -> Check:
    """The headline of a short gradient check: where it disagrees, along which direction, at which step."""
    chosen = choose_iterations(trace, iteration)
    outcome = await measurement.probe("evaluate", share=share, plan=plan_of(trace, chosen), options=QUICK)
    checks = outcome.evaluation.get("checks") or []
    if not checks:
        if outcome.timed_out or outcome.evaluation.get("status") == "stopped":
            raise Ended(status="timeout", reason="time", message=explain.NO_TIME, **common(trace))
        detail = (outcome.evaluation.get("error") or {}).get("message") or outcome.death or "it reported no check"
        raise ProbeFailed(f"The quick check gave nothing: {detail}. Its output is in {measurement.evidence.relative}.")
    return pick_headline(checks)


async def keep_ledger(
    measurement: Measurement[Any],
    trace: Trace,
    iteration: int,
    *,
    check: Check | None = None,
    share: float = 1.0,
    isolate: bool = True,
    name: str = "ledger",
) -> tuple[Ledger, ProbeOutcome]:
    """The ledger of one backward call of the iteration, and how its process ended. isolate: launches alone as well."""
    (position,) = choose_iterations(trace, iteration)
    plan = parts(trace, "iterations")[position]["plan"]
    extra: dict[str, Any] = {"ledger": {**settings(check), "isolate": isolate, "budget_bytes": ledger_bytes()}}
    call = suspicious_call(check)
    stating = parts(plan, "objective_calls")
    if call is None and stating and len(plan["backward_calls"]) > len(stating):
        call = stating[-1]  # the head of a chain of tapes: what its tape hands on shows there
    if call is not None:
        extra["call"] = call
    outcome = await measurement.probe("ledger", share=share, name=name, plan={"iterations": [plan]}, **extra)
    found = outcome.ledgers
    kept = found.get("ledgers") or []
    trained = ((check or {}).get("parameter") or {}).get("name")
    ledger = next((k for k in kept if (k.get("parameter") or {}).get("name") == trained), None)
    if ledger is None and kept:
        ledger = max(kept, key=lambda k: abs(_difference(k)))
    if ledger is not None:
        place_numpy_writes(measurement.workspace, ledger)
        if check:
            seed_against_stated(ledger, check)
        as_meant(ledger)
        return ledger, outcome
    late = outcome.timed_out or found.get("status") == "stopped" or found.get("reason") == "time"
    reason = found.get("reason")
    if reason and not late:
        message = str(found.get("message") or "The ledger could not be kept.")
        raise Ended(status="completed", reason=reason, message=message, iteration=iteration, **common(trace))
    if late:
        message = "Time ran out before the ledger was complete. Shrink the run, or give it longer (timeout_s)."
        raise Ended(status="timeout", reason="time", message=message, iteration=iteration, **common(trace))
    detail = (found.get("error") or {}).get("message") or outcome.death or "it reported no ledger"
    raise ProbeFailed(f"The ledger was not kept: {detail}. Its output is in {measurement.evidence.relative}.")


def seed_against_stated(ledger: Ledger, check: Check) -> None:
    """A tape seeded by arrays has no objective but the one they imply; where another was stated, the seed is held to that.

    The check and the ledger measure along the same direction; that they do shows in the same AD.
    """
    stated = (check.get("objective") or {}).get("kind") == "expression"
    directions = (check.get("gradient") or {}).get("directions") or []
    alone = len(check.get("windows") or []) <= 1 and ((check.get("horizon") or {}).get("windows") or 1) == 1
    if not stated or not alone or not directions or (ledger.get("seed") or {}).get("significant"):
        return
    direction = directions[int(settings(check)["direction"])]
    fd, error, own = (as_float(v) for v in (direction.get("finite_difference"), direction.get("error"),
                                            ledger.get("finite_difference")))  # fmt: skip
    same = abs(as_float(direction.get("autodiff")) - as_float(ledger.get("autodiff"))) <= SAME_AD * abs(fd)
    value, noise = own - fd, 3 * abs(error) + SAME_AD * abs(fd)
    if same and fd and abs(value) > noise:
        ledger["seed"] = {"value": value, "share": value / abs(fd), "noise": noise / abs(fd), "significant": True}
        ledger["flat"] = False


def place_numpy_writes(workspace: Workspace, ledger: Ledger) -> None:
    """No hook sees a write through a NumPy view: where the source shows one statement that makes it, that is its line."""
    for row in ledger.get("overwrites") or []:
        where = row.get("reader") or {}
        _place_numpy_write(workspace, row.get("writer") or {}, str(row.get("variable")), where)
    for jump in ledger.get("jumps") or []:
        for writer in jump.get("writers") or []:
            words = str(writer.get("what")).split()  # "a write to temp through a NumPy view"
            variable = words[3] if words[:3] == ["a", "write", "to"] else ""
            found = _place_numpy_write(workspace, writer, variable, jump) if variable else None
            if found:
                jump.update(file=found[0], line=found[1])


def _place_numpy_write(workspace: Workspace, writer: WriterRow, variable: str, where: Place) -> tuple[str, int] | None:
    """Gives the writer its line."""
    file = writer.get("file") or where.get("file")
    if "NumPy" not in str(writer.get("what")) or not file or not (workspace.root / file).is_file():
        return None
    line = numpy_write((workspace.root / file).read_text(errors="replace"), variable)
    if line is None:
        return None
    writer.update(file=file, line=line, what=f"a write to {variable} through a NumPy view")
    return file, line


def settings(check: Check | None) -> dict[str, Any]:
    """Parameter, step and direction for the ledger: those at which the quick check settled.

    one_step: no wrong gradient is looked for (the check agrees, or there is none), and what its noise hides at that step
    needs no other one.
    """
    directions = ((check or {}).get("gradient") or {}).get("directions") or []
    wrong = [k for k, d in enumerate(directions) if d.get("verdict") == "disagree"]
    index = wrong[0] if wrong else 0
    step = directions[index].get("step") if directions else None
    return {
        "step": step if isinstance(step, (int, float)) and step > 0 else None,
        "direction": index,
        "one_step": check is None or check.get("verdict") == "agree",
        "parameter_key": ((check or {}).get("parameter") or {}).get("key"),
    }


def suspicious_call(check: Check | None) -> int | None:
    """The backward call that is wrong by itself, where the iteration has several; None leaves the choice."""
    windows = (check or {}).get("windows") or []
    if len(windows) < 2:
        return None
    return next((w["backward_call"] for w in windows if w.get("verdict") == "disagree"), None)


def common(trace: Trace) -> dict[str, Any]:
    """The fields that a trace gives to every result."""
    return {
        "warp_version": trace.get("warp_version"),
        "device": trace.get("device"),
        "notes": list(trace.get("notes") or []),
    }


def constructs_of(measurement: Measurement[Any], loaded: list[str]) -> Any:
    """A function that lists the suspicious constructs of a jump's kernel, from the loaded files."""
    sources: dict[str, str] = {}
    for file in loaded:
        path = Path(file) if Path(file).is_absolute() else measurement.workspace.root / file
        if path.suffix == ".py" and path.is_file():
            sources[measurement.workspace.relative(path)] = path.read_text(errors="replace")

    def find(jump: JumpRow) -> list[Construct]:
        kernel = jump.get("kernel")
        if not kernel:
            return []
        found: dict[str, Construct] = {}
        for file, function in defined(kernel.rsplit(".", 1)[-1], jump.get("file"), set()):
            for construct in find_constructs(sources[file], file, function):
                found.setdefault(construct.code, construct)
        return list(found.values())

    def defined(name: str, near: str | None, seen: set[str]) -> list[tuple[str, str]]:
        """(file, function): where it is defined, its own file first, and where the functions that it calls are."""
        ordered = sorted(sources, key=lambda f: f != near)
        file = next((f for f in ordered if f"def {name}(" in sources[f]), None)
        if file is None or name in seen:
            return []
        seen.add(name)
        called = sorted(imported_calls(sources[file], name))
        return [(file, name), *(place for other in called for place in defined(other, None, seen))]

    return find


def overwrites(ledger: Ledger) -> list[Overwrite]:
    """Harmful ones first."""
    rows = [Overwrite.model_validate(row) for row in ledger.get("overwrites") or []]
    return sorted(rows, key=lambda o: {True: 0, None: 1, False: 2}[o.harmful])


def observations(ledger: Ledger) -> list[Observation]:
    """Things on the tape that are often mistakes."""
    return [Observation.model_validate(o) for o in ledger.get("observations") or []]


def what_if(ledger: Ledger) -> WhatIf | None:
    """The backward pass with restored reads."""
    return WhatIf.model_validate(ledger.get("what_if")) if ledger.get("what_if") else None


def ended_next(result: Result, request: Target, operation: str) -> NextCall | None:
    """What to call after an operation that could not measure."""
    arguments = request.model_dump(exclude_defaults=True)
    plain = {k: v for k, v in arguments.items() if k in Target.model_fields}
    if result.status == "blocked":
        return next_calls.does_it_run(plain)
    if result.status == "timeout":
        return next_calls.with_more_time(operation, arguments, request.timeout_s)
    if result.reason == "needs_fork":
        return NextCall(tool=operation, arguments={**arguments, "device": "cpu"}, why="The ledger works on the CPU.")
    return NextCall(tool="gradcheck_full_horizon", arguments=plain, why="Judges the gradient without the tape.")


def _difference(ledger: Ledger) -> float:
    value = as_float(ledger.get("autodiff")) - as_float(ledger.get("finite_difference"))
    return value if value == value else float("inf")

"""Has an iterative solver on the tape settled? Its result with the number of passes raised. For right gradients only.

The gradient of a few passes agrees with the differences of the same few passes, whatever they are far from. What tells is
that the objective moves when there are more of them, and then settles. The steps of a simulation do the same, so a loop is
only asked where its author calls it a solver's; and even then the answer is `likely`.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from warp_debug_gradients.operations.iterations import losses
from warp_debug_gradients.operations.measurement import Measurement
from warp_debug_gradients.operations.solver_loops import SolverLoop, read, solver_loops
from warp_debug_gradients.records import Trace
from warp_debug_gradients.render.text import percent
from warp_debug_gradients.schemas import Cause, as_float

RAISED = (4, 16)  # times the present count
FARTHER = (64, 256)  # where these do not settle it, one after the other
MOVES = 0.01  # less than this part is no news to a user
SETTLES = 0.5  # of the first move, what the second may be of a sequence that settles
MOST_LOOPS = 1
TIME_SHARE = 0.5  # of the time that is left; the runs go side by side
STARTS = 3.0  # runs of the program: the time that must be left


@dataclass(frozen=True)
class Passes:
    """The first iteration at one number of passes."""

    count: int
    objective: float
    gradient_norm: float


async def unsettled(measurement: Measurement[Any], trace: Trace) -> tuple[list[Cause], list[str]]:
    """What the solver loops of the loaded files amount to: causes, and what is ruled out."""
    causes: list[Cause] = []
    ruled_out: list[str] = []
    root = measurement.workspace.root
    files = [root / f for f in trace.get("loaded_files") or [] if str(f).endswith(".py") and (root / f).is_file()]
    sources = [read(f, measurement.workspace.relative(f)) for f in files]
    loops = solver_loops([s for s in sources if s is not None])
    present, taped = _passes(trace, 0), set((trace.get("structure") or {}).get("kernels") or {})
    own = float((trace.get("seconds") or {}).get("total") or 1.0)
    for loop in loops[:MOST_LOOPS]:
        if loop.knob in measurement.request.overrides or present is None:
            continue
        if loop.kernels and not taped.intersection(loop.kernels):
            continue  # it makes what the tape starts from
        if measurement.remaining < STARTS * own + sum(RAISED) * present_seconds(trace):
            break
        more = await asyncio.gather(*(_at(measurement, loop, loop.count * times) for times in RAISED))
        raised = [p for p in more if p is not None]
        if len(raised) < len(RAISED):
            continue
        table = [Passes(loop.count, present.objective, present.gradient_norm), *raised]
        if all(_moves(table[0], other) == (0.0, 0.0) for other in raised):
            continue  # not a digit changes: the program takes its count from elsewhere
        for times in FARTHER:
            late = measurement.remaining < STARTS * own + times * present_seconds(trace)
            if late or settled(table) or settles(table):
                break
            farther = await _at(measurement, loop, loop.count * times)
            if farther is None:
                break
            table.append(farther)
        if settled(table):
            ruled_out.append(f"a solver that has not settled: {moved(loop, table[0], table[1])}")
        elif settles(table):
            causes.append(_cause(loop, table))
    return causes, ruled_out


def settled(table: list[Passes]) -> bool:
    """Whether more passes change nothing."""
    return max(_moves(table[0], table[1])) < MOVES


def settles(table: list[Passes]) -> bool:
    """Whether what moves at first moves less and less, at last."""
    first, second = _moves(table[-3], table[-2]), _moves(table[-2], table[-1])
    return all(later <= SETTLES * earlier for earlier, later in zip(first, second) if earlier >= MOVES)


def moved(loop: SolverLoop, one: Passes, other: Passes) -> str:
    """The two numbers at two counts, in words."""
    objective, norm = _moves(one, other)
    return (
        f"with {loop.knob} = {other.count} instead of {one.count} the objective goes from {one.objective:.6g} to "
        f"{other.objective:.6g} ({percent(objective)}), the gradient's norm from {one.gradient_norm:.6g} to "
        f"{other.gradient_norm:.6g} ({percent(norm)})"
    )


def _cause(loop: SolverLoop, table: list[Passes]) -> Cause:
    return Cause(
        code="unconverged_solver",
        confidence="likely",
        file=loop.file,
        line=loop.line,
        variables=[loop.knob],
        evidence=[
            f"the gradient is right for the {loop.count} passes that are on the tape, but not for what they approach: "
            + moved(loop, table[0], table[1]),
            *(moved(loop, one, other) for one, other in pairwise(table[1:])),
            "that the loop is a solver's is taken from its names: steps of a model that takes its time look the same",
        ],
        repair=f"Raise {loop.knob} until objective and gradient settle, or settle outside of the tape and record only the last "
        "passes (or the adjoint of the solution). Where the passes are the model itself, nothing is wrong.",
    )


async def _at(measurement: Measurement[Any], loop: SolverLoop, count: int) -> Passes | None:
    """The program watched with another count; None where that gave nothing."""
    overrides = {**measurement.request.overrides, loop.knob: count}
    outcome = await measurement.probe("trace", name=f"settling-{count}", share=TIME_SHARE, overrides=overrides)
    return _passes(outcome.trace, count)


def present_seconds(trace: Trace) -> float:
    """What one iteration of the watched run took."""
    return float((trace.get("seconds") or {}).get("run") or 0.0) / max(len(trace.get("iterations") or []), 1)


def _passes(trace: Trace, count: int) -> Passes | None:
    """The numbers of a trace's first iteration, if it has them."""
    iterations = trace.get("iterations") or []
    values = losses(trace)[:1]
    if not iterations or not values or values[0] is None or iterations[0].get("gradient_norm") is None:
        return None
    found = Passes(count, values[0], as_float(iterations[0].get("gradient_norm")))
    return found if math.isfinite(found.objective) and math.isfinite(found.gradient_norm) else None


def _moves(one: Passes, other: Passes) -> tuple[float, float]:
    pairs = ((one.objective, other.objective), (one.gradient_norm, other.gradient_norm))
    objective, norm = (abs(b - a) / max(abs(a), abs(b), 1e-300) for a, b in pairs)
    return objective, norm

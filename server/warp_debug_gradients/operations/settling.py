"""Has an iterative solver on the tape settled? Its result with the number of passes raised. For right gradients only.

The gradient of a few passes agrees with the differences of the same few passes, whatever they are far from. What tells is
that the objective moves when there are more of them, and then settles. The steps of a simulation do the same, so a loop is
only asked where its author calls it a solver's; and even then the answer is `likely`.
"""

from __future__ import annotations

import ast
import asyncio
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warp_debug_gradients.operations.constructs import called, parsed
from warp_debug_gradients.operations.iterations import losses
from warp_debug_gradients.operations.knob import constant
from warp_debug_gradients.operations.measurement import Measurement
from warp_debug_gradients.render.text import percent
from warp_debug_gradients.schemas import Cause, as_float

SOLVER_WORDS = {
    "sweep", "iter", "iteration", "relax", "relaxation", "jacobi", "seidel", "sor", "newton", "picard", "solve", "solver",
    "converge", "settle", "residual", "multigrid", "cg", "pcg", "gmres", "smooth", "project",
}  # fmt: skip
TIME_WORDS = {"step", "substep", "timestep", "time", "tick", "frame", "horizon", "epoch", "hour", "day", "second"}
RAISED = (4, 16)  # times the present count
MOVES = 0.01  # less than this part is no news to a user
SETTLES = 0.5  # of the first move, what the second may be of a sequence that settles
MOST_LOOPS = 1
TIME_SHARE = 0.5  # of the time that is left; the runs go side by side
STARTS = 3.0  # runs of the program: the time that must be left


@dataclass(frozen=True)
class SolverLoop:
    """A loop of launches that looks like a solver's, and the module constant that counts its passes."""

    knob: str  # as overrides name it
    count: int
    file: str
    line: int  # of the constant


@dataclass(frozen=True)
class Passes:
    """The first iteration at one number of passes."""

    count: int
    objective: float
    gradient_norm: float


def solver_loops(path: Path, file: str) -> list[SolverLoop]:
    """Loops `for ... in range(COUNT)` over launches, that no tape is opened in, by whose names a solver passes."""
    tree = parsed(path.read_text(errors="replace"))
    found: dict[str, SolverLoop] = {}
    for loop, around in _loops(tree) if tree else ():
        name = _count(loop)
        value = constant(path, name) if name else None
        launched = [ast.unparse(n.args[0]) for n in _calls(loop, "launch", "launch_tiled") if n.args]
        if not name or type(value) is not int or value < 1 or not launched or any(_calls(loop, "Tape", "backward")):
            continue
        if _has_word(name, TIME_WORDS):  # a solver's kernel in a loop over time: the loop is the simulation's
            continue
        if any(_has_word(word, SOLVER_WORDS) for word in (name, around, *launched)):
            found.setdefault(name, SolverLoop(f"{path.stem}.{name}", value, file, _line_of(tree, name)))
    return list(found.values())


async def unsettled(measurement: Measurement[Any], trace: dict[str, Any]) -> tuple[list[Cause], list[str]]:
    """What the solver loops of the loaded files amount to: causes, and what is ruled out."""
    causes: list[Cause] = []
    ruled_out: list[str] = []
    root = measurement.workspace.root
    files = [root / f for f in trace.get("loaded_files") or [] if str(f).endswith(".py") and (root / f).is_file()]
    loops = [loop for f in files for loop in solver_loops(f, measurement.workspace.relative(f))]
    present = _passes(trace, 0)
    own = float((trace.get("seconds") or {}).get("total") or 1.0)
    for loop in loops[:MOST_LOOPS]:
        if loop.knob in measurement.request.overrides or present is None:
            continue
        if measurement.remaining < STARTS * own + sum(RAISED) * present_seconds(trace):
            break
        more = await asyncio.gather(*(_at(measurement, loop, loop.count * times) for times in RAISED))
        raised = [p for p in more if p is not None]
        if len(raised) < len(RAISED):
            continue
        table = [Passes(loop.count, present.objective, present.gradient_norm), *raised]
        if settled(table):
            ruled_out.append(f"a solver that has not settled: {moved(loop, table[0], table[1])}")
        elif settles(table):
            causes.append(_cause(loop, table))
    return causes, ruled_out


def settled(table: list[Passes]) -> bool:
    """Whether more passes change nothing."""
    return max(_moves(table[0], table[1])) < MOVES


def settles(table: list[Passes]) -> bool:
    """Whether what moves at first moves less and less."""
    first, second = _moves(table[0], table[1]), _moves(table[1], table[2])
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
            moved(loop, table[1], table[2]),
            "that the loop is a solver's is taken from its names: steps of a model that takes its time look the same",
        ],
        repair=f"Raise {loop.knob} until objective and gradient settle, or settle outside of the tape and record only the last "
        "passes (or the adjoint of the solution). Where the passes are the model itself, nothing is wrong.",
    )


async def _at(measurement: Measurement[Any], loop: SolverLoop, count: int) -> Passes | None:
    """The program watched with another count; None where that gave nothing."""
    overrides = {**measurement.request.overrides, loop.knob: count}
    outcome = await measurement.probe("trace", name=f"settling-{count}", share=TIME_SHARE, overrides=overrides)
    return _passes(outcome.result or {}, count)


def present_seconds(trace: dict[str, Any]) -> float:
    """What one iteration of the watched run took."""
    return float((trace.get("seconds") or {}).get("run") or 0.0) / max(len(trace.get("iterations") or []), 1)


def _passes(trace: dict[str, Any], count: int) -> Passes | None:
    """The numbers of a trace's first iteration, if it has them."""
    iterations = trace.get("iterations") or []
    values = losses(trace)[:1]
    if not iterations or not values or values[0] is None or iterations[0].get("gradient_norm") is None:
        return None
    found = Passes(count, values[0], as_float(iterations[0]["gradient_norm"]))
    return found if math.isfinite(found.objective) and math.isfinite(found.gradient_norm) else None


def _moves(one: Passes, other: Passes) -> tuple[float, float]:
    pairs = ((one.objective, other.objective), (one.gradient_norm, other.gradient_norm))
    objective, norm = (abs(b - a) / max(abs(a), abs(b), 1e-300) for a, b in pairs)
    return objective, norm


def _loops(tree: ast.AST, around: str = "") -> Iterator[tuple[ast.For, str]]:
    """Every `for`, with the name of the function that it stands in."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.For):
            yield node, around
        yield from _loops(node, node.name if isinstance(node, ast.FunctionDef) else around)


def _count(loop: ast.For) -> str | None:
    """COUNT of `range(COUNT)`."""
    call = loop.iter
    ranged = isinstance(call, ast.Call) and ast.unparse(call.func) == "range" and len(call.args) == 1
    return call.args[0].id if ranged and isinstance(call.args[0], ast.Name) else None  # type: ignore[union-attr]


def _calls(node: ast.AST, *names: str) -> list[ast.Call]:
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
    return [n for n in calls if called(n) in names]


def _has_word(name: str, wanted: set[str]) -> bool:
    words = re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name.rsplit(".", 1)[-1]).lower())
    return any(word in wanted or word.rstrip("s") in wanted for word in words)


def _line_of(tree: ast.AST | None, name: str) -> int:
    body = tree.body if isinstance(tree, ast.Module) else []
    return next((n.lineno for n in body if isinstance(n, (ast.Assign, ast.AnnAssign)) and name in _targets(n)), 1)


def _targets(node: ast.Assign | ast.AnnAssign) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}

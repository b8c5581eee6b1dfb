"""The gradient check at several values of one module constant: the smallest that fails, or a plain sweep."""

from __future__ import annotations

import ast
import asyncio
import os
import time
from pathlib import Path
from typing import Any

from warp_debug_gradients.errors import UsageError
from warp_debug_gradients.operations import ledger as ledgers
from warp_debug_gradients.operations.constructs import parsed
from warp_debug_gradients.operations.gradcheck import choose_engine, pick_headline
from warp_debug_gradients.operations.iterations import choose_iterations, iteration_of, plan_of
from warp_debug_gradients.operations.measurement import Measurement, refuse_unusable, script_error
from warp_debug_gradients.records import Check, Trace
from warp_debug_gradients.render.text import percent
from warp_debug_gradients.schemas import BisectStepsRequest, BisectStepsResult, Cause, KnobPoint, NextCall, as_float

AT_ONCE = max(1, min(4, (os.cpu_count() or 2)))
OPTIONS = {"directions": 2, "elements": 0, "windows": 0}
LEAST_S = 3.0  # no further value is begun with less time left
MOST_ROUNDS = 12
UNSETTLED = 0.01  # an objective or gradient that still moves by this much from the last value but one to the last

Number = int | float


async def run_knob(measurement: Measurement[BisectStepsRequest]) -> BisectStepsResult:
    """Runs the checks and says what they show together."""
    request = measurement.request
    table = _Table(measurement)
    values = sorted(set(request.values))
    if values:
        await table.try_all(values)
    else:
        present = _whole(present_value(measurement, str(request.knob)), str(request.knob))
        if request.method == "sweep":
            await table.try_all(sweep_values(present))
        else:
            await _bisect(table, present)
    points = table.points
    first = points[0] if points else None
    if first is not None and all(p.reason == "does_not_run" for p in points) and table.error is not None:
        raise ledgers.Ended(
            status="blocked",
            reason="does_not_run",
            message=f"The program does not run: {first.message}",
            error=table.error,
        )
    if not points:
        raise ledgers.Ended(
            status="timeout", reason="time", message="Time ran out before a single value was checked. Give it longer."
        )
    return _result(measurement, table)


async def _bisect(table: _Table, present: int) -> None:
    """Both ends first, then the middle of what is left, as many at a time as there are cores."""
    await table.try_all([1, present] if present > 1 else [present])
    for _ in range(MOST_ROUNDS):
        bracket = table.bracket()
        if bracket is None or not table.has_time:
            return
        inside = [v for v in between(*bracket, count=AT_ONCE) if not table.tried(v)]
        if not inside:
            return
        await table.try_all(inside)


def between(low: int, high: int, count: int) -> list[int]:
    """`count` whole numbers that divide the open interval evenly."""
    return sorted({low + round((high - low) * k / (count + 1)) for k in range(1, count + 1)} - {low, high})


def sweep_values(present: int) -> list[int]:
    """A quarter of the present value to twice it."""
    return sorted({max(1, present // 4), max(1, present // 2), present, present * 2})


class _Table:
    """The values tried so far."""

    def __init__(self, measurement: Measurement[BisectStepsRequest]) -> None:
        self.measurement = measurement
        self.error: Any = None
        self.trace: Trace = {}
        self._points: dict[Number, KnobPoint] = {}

    @property
    def points(self) -> list[KnobPoint]:
        return [self._points[v] for v in sorted(self._points)]

    @property
    def has_time(self) -> bool:
        slowest = max((p.seconds or 0.0 for p in self._points.values()), default=0.0)
        return self.measurement.remaining > max(LEAST_S, slowest)

    def tried(self, value: Number) -> bool:
        return value in self._points

    def bracket(self) -> tuple[int, int] | None:
        """(largest value below the smallest failing one, that one); None where nothing lies between."""
        failing = [p.value for p in self.points if p.verdict == "disagree"]
        if not failing:
            return None
        high = min(failing)
        below = [p.value for p in self.points if p.value < high and p.verdict == "agree"]
        low = max(below, default=0)
        return (int(low), int(high)) if high - low > 1 else None

    async def try_all(self, values: list[Any]) -> None:
        """Checks of all values, side by side as far as there are cores."""
        gate = asyncio.Semaphore(AT_ONCE)
        rounds = -(-len(values) // AT_ONCE)
        budget = self.measurement.remaining / max(1, rounds)

        async def one(value: Number) -> None:
            async with gate:
                if self.measurement.remaining > LEAST_S:
                    self._points[value] = await self._check(value, budget)

        await asyncio.gather(*(one(value) for value in values))

    async def _check(self, value: Number, budget: float) -> KnobPoint:
        """Trace and check with the knob at `value`."""
        started, measurement = time.monotonic(), self.measurement
        request = measurement.request
        overrides = {**request.overrides, str(request.knob): value}
        name = f"knob-{value}"
        share = min(1.0, 0.5 * budget / max(measurement.remaining, 1e-9))
        traced = await measurement.probe("trace", name=f"{name}.trace", share=share, overrides=overrides)
        refuse_unusable(traced, request)
        trace = traced.trace
        self.trace = self.trace or trace
        point = KnobPoint(value=value)
        try:
            if trace.get("status") == "failed" or (not trace and not traced.timed_out):
                self.error = script_error(traced, measurement)
                point.reason, point.message = "does_not_run", f"{self.error.type}: {self.error.message}"
                return point
            if not trace.get("iterations"):
                point.reason = "time" if traced.timed_out or trace.get("status") == "stopped" else "no_parameter"
                return point
            try:
                chosen = choose_iterations(trace, request.iteration)
            except UsageError as error:  # fewer iterations at this value
                point.reason, point.message = "no_iteration", error.message
                return point
            left = min(1.0, max(budget - (time.monotonic() - started), 2.0) / max(measurement.remaining, 1e-9))
            if choose_engine("auto", trace) != "fork":
                raise ledgers.Ended(status="completed", reason="needs_fork", message=ledgers.why_no_fork(trace))
            done = await measurement.probe(
                "evaluate",
                name=f"{name}.evaluate",
                share=left,
                plan=plan_of(trace, chosen),
                options=OPTIONS,
                overrides=overrides,
            )
            checks = done.evaluation.get("checks") or []
            if not checks:
                point.reason, point.message = "time" if done.timed_out else "not_measured", done.death
                return point
            _fill(point, pick_headline(checks), trace)
            return point
        finally:
            point.seconds = round(time.monotonic() - started, 2)


def _fill(point: KnobPoint, check: Check, trace: Trace) -> None:
    gradient = check.get("gradient") or {}
    for name in ("autodiff", "finite_difference", "error", "relative_error"):
        setattr(point, name, gradient.get(name))
    point.verdict, point.reason = check["verdict"], check.get("reason")
    point.objective = (check.get("objective") or {}).get("value")
    point.iteration = check.get("iteration")
    item = iteration_of(trace, check["iteration"])
    point.gradient_norm, point.ops = item.get("gradient_norm"), item.get("ops")


def _result(measurement: Measurement[BisectStepsRequest], table: _Table) -> BisectStepsResult:
    request, points = measurement.request, table.points
    failing = [p for p in points if p.verdict == "disagree"]
    decided = [p for p in points if p.verdict in ("agree", "disagree")]
    smallest = failing[0] if failing else None
    result = BisectStepsResult(
        **measurement.base(),
        **ledgers.common(table.trace),
        status="completed",
        method=request.method,
        message="",
        verdict="disagree" if failing else "agree" if decided else "inconclusive",
        reason=None if decided else (points[0].reason or "inconclusive"),
        parameter=", ".join(p["name"] for p in table.trace.get("parameters") or []) or None,
        objective=((table.trace.get("objectives") or [{}])[0]).get("name"),
        iteration=smallest.iteration if smallest else points[-1].iteration,
        knob=request.knob,
        points=points,
        smallest_failing=smallest.value if smallest else None,
    )
    result.message = knob_message(str(request.knob), points, request.method)
    if request.method == "sweep":
        result.causes = unsettled(str(request.knob), points)
    result.blind_spots = [f"values of {request.knob} between those listed", "single elements of the gradient"]
    arguments = request.model_dump(exclude_defaults=True, exclude={"method", "knob", "values"})
    if smallest:
        overrides = {**request.overrides, str(request.knob): smallest.value}
        at_value = {**arguments, "overrides": overrides}
        result.next = NextCall(
            tool="bisect_steps", arguments=at_value, why="The ledger of the smallest failing run: which launch it is."
        )
    return result


def knob_message(knob: str, points: list[KnobPoint], method: str) -> str:
    """What the table shows, in a sentence or two."""
    failing = [p for p in points if p.verdict == "disagree"]
    unsure = [p.value for p in points if p.verdict not in ("agree", "disagree")]
    doubt = f" Not decided at {', '.join(map(str, unsure[:6]))}." if unsure else ""
    if method == "sweep":
        moved = " ".join(_moved(name, points) for name in ("objective", "gradient_norm")).strip()
        wrong = f" The gradient disagrees at {', '.join(str(p.value) for p in failing[:6])}." if failing else ""
        return f"Over {len(points)} values of {knob}: {moved or 'nothing could be compared.'}{wrong}{doubt}"
    if not failing:
        agreeing = [p.value for p in points if p.verdict == "agree"]
        if not agreeing:
            return f"No value of {knob} could be decided.{doubt}"
        return f"AD and FD agree at every decided value of {knob} ({', '.join(map(str, agreeing))}).{doubt}"
    first = failing[0]
    below = [p for p in points if p.value < first.value and p.verdict == "agree"]
    agrees = f"; they agree at {below[-1].value}" if below else ""
    gap = below and isinstance(first.value, int) and first.value - below[-1].value > 1
    smallest = "the smallest failing value tried is" if gap else "AD and FD part at"
    return (
        f"{knob}: {smallest} {first.value} (AD = {_number(first.autodiff)}, FD = {_number(first.finite_difference)}, "
        f"relative error {percent(first.relative_error)}){agrees}.{doubt}"
    )


def unsettled(knob: str, points: list[KnobPoint]) -> list[Cause]:
    """A result that still moves with the number of iterations is not the solution's."""
    evidence = [
        text
        for name in ("objective", "gradient_norm")
        if (text := _moved(name, points)) and _change(name, points) > UNSETTLED
    ]
    if not evidence:
        return []
    return [
        Cause(
            code="unconverged_solver",
            confidence="possible",
            variables=[knob],
            evidence=[text.rstrip(".") for text in evidence],
            repair=f"If {knob} counts solver iterations, raise it until both settle; if it is a horizon, this is expected.",
        )
    ]


def _moved(name: str, points: list[KnobPoint]) -> str:
    known = [p for p in points if getattr(p, name) is not None]
    if len(known) < 2:
        return ""
    words = {"objective": "the objective", "gradient_norm": "the gradient's norm"}[name]
    first, last = known[-2], known[-1]
    return (
        f"{words} goes from {_number(getattr(first, name))} to {_number(getattr(last, name))} "
        f"({percent(_change(name, points))}) between {first.value} and {last.value}."
    )


def _change(name: str, points: list[KnobPoint]) -> float:
    known = [as_float(getattr(p, name)) for p in points if getattr(p, name) is not None]
    if len(known) < 2:
        return 0.0
    return abs(known[-1] - known[-2]) / max(abs(known[-1]), abs(known[-2]), 1e-300)


def present_value(measurement: Measurement[Any], knob: str) -> Number | None:
    """The knob's value in the source, found by its module's name."""
    module, _, name = knob.rpartition(".")
    stem = module.rsplit(".", 1)[-1]
    named = [f for f in measurement.target_files if f.stem == stem]
    for file in [*named, *sorted(measurement.workspace.root.glob(f"**/{stem}.py"))[:20]]:
        value = constant(file, name)
        if value is not None:
            return value
    return None


def constant(file: Path, name: str) -> Number | None:
    """`name = 40` at the top level of a file."""
    try:
        tree = parsed(file.read_text(errors="replace"))
    except OSError:
        return None
    for node in tree.body if tree else ():
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        value = getattr(node, "value", None)
        for target in targets:
            names, values = [target], [value]
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                names, values = target.elts, value.elts
            for each, given in zip(names, values):
                found = getattr(given, "value", None) if isinstance(given, ast.Constant) else None
                named = isinstance(each, ast.Name) and each.id == name
                if named and isinstance(found, (int, float)) and not isinstance(found, bool):
                    return found
    return None


def _whole(value: Number | None, knob: str) -> int:
    if value is None:
        raise UsageError(f"The present value of {knob} is not a number in the source. Give the values to try (values).")
    if not isinstance(value, int) or value < 1:
        raise UsageError(f"{knob} is {value}, not a positive whole number. Give the values to try (values).")
    return value


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, (int, float)) else str(value if value is not None else "?")

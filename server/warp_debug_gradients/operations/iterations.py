"""Which optimizer iterations a gradient check looks at. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from warp_debug_gradients.errors import UsageError
from warp_debug_gradients.records import Iteration, Place, Trace, part, parts
from warp_debug_gradients.schemas import as_float

LEFT_BEHIND = "left_behind"  # of probe/consumption.py
RISE = 1.05  # a loss this many times the previous one has turned
FEW_LENGTHS = 3  # different numbers of operations: more are a length that varies, not a branch taken now and then


def plan_of(trace: Trace, positions: list[int]) -> dict[str, Any]:
    """The job's plan: the iterations at these positions."""
    return plan_with(trace, [parts(trace, "iterations")[position]["plan"] for position in positions])


def plan_with(trace: Trace, listed: list[Any]) -> dict[str, Any]:
    """A plan of these iterations: how long the watched run and one iteration took, and how much memory."""
    seconds = part(trace, "seconds").get("run")
    one = (seconds or 0.0) / max(1, len(parts(trace, "iterations")))
    return {
        "iterations": listed,
        "run_seconds": seconds,
        "iteration_seconds": one,
        "memory_bytes": trace.get("memory_bytes"),
    }


def iteration_of(trace: Trace, index: int) -> Iteration:
    """An iteration by its index; one that nothing is known of where the trace has none."""
    unknown: Iteration = {"index": index, "plan": None}
    return next((item for item in trace.get("iterations") or [] if item.get("index") == index), unknown)


def choose_iterations(trace: Trace, requested: int | None) -> list[int]:
    """Positions in `trace["iterations"]`: the requested one, else the first, the second (some faults need a
    history), the one at which something turns, the first that was seen to use another array's gradient, and one that is
    built otherwise than all of these."""
    iterations = parts(trace, "iterations")
    if requested is not None:
        for position, item in enumerate(iterations):
            if item.get("index", position) == requested:
                return [position]
        stopped = " before the time ran out: raise --timeout" if trace.get("status") == "stopped" else ""
        raise UsageError(
            f"There is no iteration {requested}: the traced run has {len(iterations)}, counted from 0{stopped}."
        )
    chosen = list(range(min(2, len(iterations))))
    turn = turning_point(trace)
    if turn is not None and turn not in chosen:
        chosen.append(turn)
    late = [k for k, item in enumerate(iterations) if part(item, "gradient_read").get("when") == LEFT_BEHIND]
    if late and not set(late) & set(chosen):
        chosen.append(late[0])
    other = built_otherwise(trace, chosen)
    return chosen if other is None else [*chosen, other]


def built_otherwise(trace: Trace, chosen: list[int]) -> int | None:
    """The position of the first iteration that does what none of the chosen ones does: a report every tenth time, say.

    Backward calls at other lines, or of other parameters, come first; then another number of operations. One that begins
    before the last backward call of the iteration before has that one's tape in it (a report after the update): no gradient of
    its own.
    """
    iterations: list[Iteration] = parts(trace, "iterations")
    known = {key for position in chosen for key in iterations[position].get("parameter_keys") or []}
    others = [k for k in range(len(iterations)) if _stands_alone(iterations, k)]
    called = [_calls(item) for item in iterations]
    lengths = [item.get("ops") for item in iterations]
    seen, measured = [called[k] for k in chosen], [lengths[k] for k in chosen]
    branches = len(set(lengths)) <= FEW_LENGTHS
    found = [
        k for k in others if called[k] not in seen or not known.issuperset(iterations[k].get("parameter_keys") or [])
    ]
    return next(iter(found or [k for k in others if branches and lengths[k] not in measured]), None)


def _stands_alone(iterations: Sequence[Iteration], position: int) -> bool:
    """Whether the iteration begins after the last backward call of the one before."""
    before, own = (part(iterations[k], "plan") for k in (max(position - 1, 0), position))
    last = max(part(before, "call_events").values(), default=-1)
    return position == 0 or own.get("pause") is None or own["pause"] > last


def _calls(item: Iteration) -> Any:
    """Which backward calls make up an iteration, which of them are in vain, and where a gradient is changed between them."""
    places: dict[str, Place | None] = part(part(item, "plan"), "call_places")
    called = [(p or {}).get("line") for p in places.values()]
    edited = item.get("gradient_edited") or {}
    return called, edited.get("line"), len(item.get("discarded") or [])


def turning_point(trace: Trace) -> int | None:
    """The position of the iteration whose update made something turn: a non-finite gradient's own; for a loss
    that rises or is not finite, the one before."""
    indices = [item.get("index", k) for k, item in enumerate(parts(trace, "iterations"))]
    nonfinite = part(trace, "nonfinite")
    if nonfinite.get("iteration") in indices:
        position = indices.index(nonfinite["iteration"])
        return position if nonfinite.get("what") == "gradient" else max(position - 1, 0)
    rise = first_rise(losses(trace))
    return None if rise is None else rise - 1


def first_rise(values: list[float | None]) -> int | None:
    """The first position whose loss is clearly above the one before."""
    for k in range(1, len(values)):
        before, now = values[k - 1], values[k]
        if before is not None and now is not None and now > before + (RISE - 1) * abs(before):
            return k
    return None


def losses(trace: Trace) -> list[float | None]:
    """The summed loss of each iteration; None where backward was seeded and there is no scalar loss."""
    found: list[float | None] = []
    for item in parts(trace, "iterations"):
        known = [as_float(v) for v in parts(item, "losses") if v is not None]
        found.append(sum(known) if known else None)
    return found

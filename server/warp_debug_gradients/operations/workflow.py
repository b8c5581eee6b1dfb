"""The user's own command before and after the repair: is what they complained about gone?

Before: what the baseline recorded (its script is no longer on disk). After: the watched run, which *is* the user's
command where there are no overrides; else one more run, at full size.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from warp_debug_gradients.metrics import printed_values
from warp_debug_gradients.operations.iterations import losses
from warp_debug_gradients.operations.measurement import Measurement
from warp_debug_gradients.records import Trace
from warp_debug_gradients.schemas import Health, RunHealth, Target, Workflow
from warp_debug_gradients.worker import ProbeOutcome

LEAST_S = 3.0  # a run of the whole program is not begun with less time
PROGRESS = 0.01  # a loss that falls by a smaller share over the whole run has stalled
RISE = 1.05  # one that ends at this many times its start diverges
WORDS = ("loss", "objective", "cost", "error", "err", "energy", "misfit", "residual")
KEPT = 200  # values for the picture


def health(values: Sequence[float]) -> Health:
    """What a loss does over a run."""
    if not all(map(math.isfinite, values)):
        return "nan"
    first, last = values[0], values[-1]
    if last > first + (RISE - 1) * abs(first):
        return "diverging"
    return "decreasing" if last < first - PROGRESS * abs(first) else "stalled"


def run_health(output: str, trace: Trace, *, full_size: bool, name: str | None = None) -> RunHealth | None:
    """The printed loss (or the one called `name`); where none is printed, the losses handed to backward."""
    printed = {k: v for k, v in printed_values(output).items() if len(v) >= 2}
    if name in printed:
        chosen = name
    else:
        chosen = next((k for word in WORDS for k in printed if word in k.lower().split("/")[-1]), None)
    if chosen is not None:
        label, values = chosen, printed[chosen]
    else:
        label, values = "loss handed to backward", [v for v in losses(trace) if v is not None]
    if len(values) < 2:
        return None
    finite = [v for v in values if math.isfinite(v)]
    return RunHealth(
        name=label,
        health=health(values),
        first=values[0],
        last=values[-1],
        best=min(finite) if finite else None,
        count=len(values),
        full_size=full_size,
        complete=trace.get("status") == "completed",
        values=_thinned(values),
    )


async def run_workflow(measurement: Measurement[Any], outcome: ProbeOutcome) -> tuple[ProbeOutcome | None, str]:
    """The run of the user's own command at full size: the watched run, or one more. (None, why) where there is none."""
    request = measurement.request
    if not request.overrides:
        return outcome, ""
    if measurement.remaining < LEAST_S:
        return None, "no time was left for the run at full size (timeout_s)"
    return await measurement.probe("trace", name="workflow", overrides={}), ""


def judge_workflow(
    request: Target, python: str, before: RunHealth | None, after: RunHealth | None, why: str
) -> Workflow:
    """Whether the complaint is gone, in one sentence with the numbers."""
    command = command_of(request, python)
    if after is None:
        why = why or "the run printed no loss twice, and handed fewer than two losses to backward"
        return Workflow(command=command, status="not_measured", before=before, message=f"Not measured: {why}.")
    status = "completed" if after.complete else "stopped"
    size = "at full size" if after.full_size else "under the baseline's overrides"
    text = f"{after.name} {size}{'' if after.complete else ' (stopped when its time ran out)'}: {_line(after)}"
    complaint = "unknown"
    if before is None:
        text += "; the baseline recorded no such series"
    elif before.full_size != after.full_size:
        text += f"; before, under overrides: {_line(before)}: another size, so not to be compared number by number"
    elif before.name != after.name:
        text += f"; the baseline recorded another series, {before.name}: {_line(before)}"
    else:
        text += f"; before: {_line(before)}"
    if before is not None:
        well, ill = after.health == "decreasing", before.health != "decreasing"
        complaint = ("gone" if well else "remains") if ill else ("was_not_seen" if well else "remains")
    words = {
        "gone": "The complaint is gone",
        "remains": "The complaint remains: if the gradient agrees, look at step size, model and data",
        "was_not_seen": "The loss fell before, too",
        "unknown": "Whether the complaint is gone cannot be said",
    }
    return Workflow(
        command=command,
        status=status,
        before=before,
        after=after,
        complaint=complaint,
        message=f"{words[complaint]}. {text}.",
    )


def command_of(request: Target, python: str) -> str:
    """What the user would type."""
    start = [Path(python).name]
    start += ["-m", request.module] if request.module else [str(request.script or request.forward)]
    return shlex.join([*start, *request.args])


def _line(series: RunHealth) -> str:
    first, last = (f"{v:.6g}" if isinstance(v, float) else str(v) for v in (series.first, series.last))
    return f"{first} -> {last} over {series.count} values, {series.health}"


def _thinned(values: Sequence[float]) -> list[Any]:
    if len(values) <= KEPT:
        return list(values)
    return [values[round(k * (len(values) - 1) / (KEPT - 1))] for k in range(KEPT)]

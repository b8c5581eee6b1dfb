"""Numbers that a training script prints, line by line, as named series. Pure: text in, series out."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Literal

from warp_debug_gradients.schemas import Series

NUMBER = r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|nan|inf(?:inity)?)"
PAIR = re.compile(
    rf"(?<![\w.])(?P<name>[A-Za-z_|∥][\w.|∥/\-]*(?: (?:loss|norm|error|grad|energy|cost))?)"  # kappa, |g|, train loss
    rf"(?:\s*[=:]\s*|\s+)\[?\s*(?P<value>{NUMBER})(?![\w.%])",
    re.IGNORECASE,
)
COUNTERS = {"it", "iter", "iteration", "step", "epoch", "frame", "i", "it.", "opt", "train_iter", "time", "t"}
TOOL_LINES = re.compile(r"^\s*(Module |Warp |CUDA |Kernel cache|Devices:|\"cpu\"|\"cuda|Traceback|File )")
STALLED = 1e-3  # a change below this share of the largest value is no change
MOST_SERIES = 12
LONGEST_LINE = 1000  # characters; metrics stand at the beginning
LONGEST_OUTPUT = 1_000_000


def printed_values(output: str) -> dict[str, list[float]]:
    """Every number that was printed under a name, in the order of the names' first appearance."""
    values: dict[str, list[float]] = {}
    if len(output) > LONGEST_OUTPUT:
        output = output[: LONGEST_OUTPUT // 2] + "\n" + output[-LONGEST_OUTPUT // 2 :]
    for line in output.splitlines():
        line = line[:LONGEST_LINE]
        if TOOL_LINES.match(line):
            continue
        for match in PAIR.finditer(line):
            name = match["name"].rstrip("-")
            if name.lower() not in COUNTERS:
                values.setdefault(name, []).append(float(match["value"]))
    return values


def printed_series(output: str) -> list[Series]:
    """The series a script printed at least twice."""
    return [
        Series(name=name, first=v[0], last=v[-1], count=len(v), trend=trend(v))
        for name, v in printed_values(output).items()
        if len(v) >= 2
    ][:MOST_SERIES]


def trend(values: Sequence[float]) -> Literal["decreasing", "stalled", "increasing", "nonfinite"]:
    """Where a series goes, from its first value to its last."""
    if not all(math.isfinite(v) for v in values):
        return "nonfinite"
    change = values[-1] - values[0]
    if abs(change) <= STALLED * max(abs(v) for v in values):
        return "stalled"
    return "increasing" if change > 0 else "decreasing"

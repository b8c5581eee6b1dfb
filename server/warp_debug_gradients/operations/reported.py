"""Is what the script reports what its gradient is taken of? The printed numbers beside the losses handed to backward. Pure."""

from __future__ import annotations

import math
import re

from warp_debug_gradients.operations.iterations import losses
from warp_debug_gradients.operations.workflow import WORDS
from warp_debug_gradients.records import Trace

MOVES = 0.05  # of its first value: a smaller change is no direction
FEWEST = 3  # printed values


def reported_otherwise(trace: Trace) -> str | None:
    """The printed loss that goes up while the loss on the tape goes down, or the other way round; None where none does."""
    taped = [v for v in losses(trace) if v is not None]
    if len(taped) < FEWEST or not _direction(taped):
        return None
    for name, values in (trace.get("printed") or {}).items():
        is_loss = any(word in WORDS for word in re.findall(r"[a-z]+", name.lower()))
        if is_loss and len(values) >= FEWEST and _direction(values) * _direction(taped) < 0:
            return (
                f"what the script prints as {name} goes from {values[0]:.6g} to {values[-1]:.6g}, while the loss on the tape goes "
                f"from {taped[0]:.6g} to {taped[-1]:.6g}: it is another number than the one whose gradient is taken"
            )
    return None


def _direction(values: list[float]) -> int:
    """1 where a series rises from its first value to its last, -1 where it falls, 0 where it does neither."""
    change = values[-1] - values[0]
    if not math.isfinite(change) or abs(change) < MOVES * abs(values[0]):
        return 0
    return 1 if change > 0 else -1

"""Reads whose content was not there any more when the adjoint ran: found, attributed, judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

import numpy as np

from .arrays import float_parts, host
from .gradients import Contents
from .recorded import Access, Operation
from .recording import Recorder
from .shadows import Shadows, view_of
from .writers import file_line, overwriter

CHANGED_FRACTION = 1e-6  # adjoints that differ by less than this part of their largest element are the same


@dataclass
class Clobbered:
    """A read whose content was not there any more when its adjoint ran."""

    operation: Operation
    access: Access
    max_abs: float
    relative: float
    in_kernel: bool
    harmful: bool | None
    writer: dict[str, Any] | None

    @property
    def races(self) -> bool:
        """The launch writes the very array that its threads read at each other's places.

        Where they meet, the order of the threads decides what the program computes: its forward values, too.
        """
        mine = self.access
        return mine.neighbours and any(
            other.written
            and not other.accumulated
            and other.number == mine.number
            and other.low < mine.high
            and mine.low < other.high
            and mine.array.is_contiguous
            and other.array.is_contiguous
            for other in self.operation.accesses
        )


def clobbered_reads(recorder: Recorder, now: Shadows, operation: Operation) -> list[Clobbered]:
    """The reads of an operation, where `now` has gone back to before it."""
    found = []
    for access in operation.accesses:
        if not access.read or access.accumulated or access.number not in now.bytes:
            continue  # the adjoint of an addition needs no value
        if now.holds(access.number, access.base, access.low, access.high):
            continue
        present = host(access.array)
        inner = present.shape[len(access.array.shape) :]
        then = view_of(now.bytes[access.number], access.base, access.array, present.dtype, inner)
        values = list(zip(_number_parts(present), _number_parts(then), strict=True))
        if all(np.array_equal(now, before, equal_nan=now.dtype.kind == "f") for now, before in values):
            continue
        largest = max(_largest(now.astype(np.float64) - before.astype(np.float64)) for now, before in values)
        size = max(_largest(before.astype(np.float64)) for _, before in values)
        own = operation.overwrites(access)
        what = f"kernel {operation.kernel}, the same launch" if operation.definition else operation.kernel
        itself = {"what": what, **file_line(operation.place)}
        found.append(
            Clobbered(
                operation,
                access,
                largest,
                largest / size if size else float("inf"),
                own,
                None,
                itself if own else overwriter(recorder, operation, access),
            )
        )
    return found


def judge(
    recorder: Recorder,
    clobbered: list[Clobbered],
    tried: Callable[[Contents], list[np.ndarray]],
    before: Contents,
    left: Contents,
    at_end: Contents,
) -> None:
    """Whether the adjoint needs the overwritten values, and whether the operation itself overwrote them.

    tried: the gradients that the adjoint makes of given contents. before: what the operation read. left: what it left
    in the parts that it updates: where the adjoint is right on that, its own write did no harm, and the harm came
    later. at_end: what the tape left in the parts that changed after it.
    """
    as_is, restored = tried({}), tried(before)
    harmful = not same(as_is, restored)
    spoilt_behind = bool(at_end) and harmful and same(tried({**before, **at_end}), restored)
    later = bool(left) and harmful and same(tried({**before, **left}), restored)
    ended = {number for number, _, _ in at_end}
    for item in clobbered:
        item.harmful = harmful
        if later and item.in_kernel:
            item.in_kernel = False
            item.writer = overwriter(recorder, item.operation, item.access)
        if spoilt_behind and item.access.number in ended:
            behind = overwriter(recorder, item.operation, item.access, behind_tape=True)
            if behind is not None:  # else it was made on the way, and seen at the end only
                item.in_kernel, item.writer = False, behind


def same(some: list[np.ndarray], others: list[np.ndarray]) -> bool:
    """Whether two outcomes of an adjoint are equal up to round-off."""
    for a, b in zip(some, others):
        for one, other in zip(float_parts(a), float_parts(b)):
            size = _largest(other)
            if not np.allclose(one, other, rtol=1e-5, atol=CHANGED_FRACTION * size, equal_nan=True):
                return False
    return True


def _largest(values: np.ndarray) -> float:
    """The largest finite magnitude; 0 where there is none."""
    magnitudes = np.abs(values[np.isfinite(values)])
    return float(magnitudes.max()) if magnitudes.size else 0.0


def _number_parts(values: np.ndarray) -> list[np.ndarray]:
    """The float fields of structs, or a plain array of numbers of any kind."""
    return [values] if values.dtype.kind in "iub" else float_parts(values)

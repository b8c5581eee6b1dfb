"""Long tapes, coarse to fine: which operations are recorded singly, and which as a stretch, at its end only. Pure.

To keep what every operation of a long tape left behind takes memory in proportion to its length. So a tape that
does not fit is cut into stretches first: of a stretch only those bytes are kept that an operation outside of it
touches as well, since every other adjoint is zero at its ends. The ledger of the stretches says which of them puts
an error in, and in a second round the operations of these are recorded singly.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Iterable, Sequence

import numpy as np

from .registry import Ranges

STRETCHES = 32  # that a long tape is cut into, at least
MOST_STRETCHES = 512
OF_BUDGET = 0.125  # of the budget of one recording that a stretch may write, so that several can be recorded singly
ENDS = 0.4  # of the budget that the ends of the stretches may take
SINGLY = 0.9  # of the budget for these ends and the operations recorded singly; the rest is for what was not foreseen

Part = tuple[int, int, int]  # a root's number, first and one-past-last byte within it


@dataclass
class Shape:
    """What one run has learnt of a tape. first: index of its first recorded operation.

    touched: of each operation the parts that it reads or writes. sizes: the bytes that it takes to record each one.
    lasting: roots whose gradient is not zero when backward begins (a seed, something stale): they count at every cut.
    """

    first: int
    touched: list[list[Part]]
    sizes: list[int]
    lasting: set[int] = field(default_factory=set)

    @property
    def stop(self) -> int:
        return self.first + len(self.touched)

    @classmethod
    def read(cls, found: dict[str, Any]) -> Shape:
        """From JSON."""
        touched = [[(number, low, high) for number, low, high in parts] for parts in found["touched"]]
        return cls(found["first"], touched, found["sizes"], set(found["lasting"]))


class Cuts:
    """A tape as consecutive stretches; one of a single operation is recorded singly."""

    def __init__(self, stretches: Sequence[range], shape: Shape):
        self.stretches = list(stretches)
        self._first, self._lasting, self._touched = shape.first, shape.lasting, shape.touched
        self._of = [s for s in self.stretches for _ in s]
        self._uses = _uses(shape)

    def fits(self, first: int, touched: list[list[Part]]) -> bool:
        """Whether a run's operations touch what those of the tape touched that was cut."""
        return first == self._first and touched == self._touched

    def stretch(self, op: int) -> range:
        """The stretch that an operation belongs to; one beyond the tape as it was is by itself."""
        k = op - self._first
        return self._of[k] if 0 <= k < len(self._of) else range(op, op + 1)

    def begins(self, op: int) -> bool:
        return self.stretch(op).start == op

    def ends(self, op: int) -> bool:
        return self.stretch(op).stop == op + 1

    def outlives(self, part: Part, stretch: range) -> bool:
        """Whether an operation behind the stretch touches these bytes, or a gradient that is there from the start."""
        number, low, high = part
        uses = self._uses.get(number)
        if uses is None or number in self._lasting:
            return True
        lows, highs, last = uses
        return bool(np.any((lows < high) & (highs > low) & (last >= stretch.stop)))


def _uses(shape: Shape) -> dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Root -> first bytes, ends and last operation of every part of it that is touched."""
    last: dict[int, dict[tuple[int, int], int]] = {}
    for op, parts in enumerate(shape.touched, shape.first):
        for number, low, high in parts:
            last.setdefault(number, {})[low, high] = op
    return {
        number: (
            np.array([low for low, _ in parts]),
            np.array([high for _, high in parts]),
            np.array(list(parts.values())),
        )
        for number, parts in last.items()
    }


def coarse(shape: Shape, budget: int) -> Cuts | None:
    """The tape in stretches that write about equally much; None where even their ends do not fit into the budget."""
    total = sum(shape.sizes)
    count = min(max(STRETCHES, round(total / (OF_BUDGET * budget))), MOST_STRETCHES, len(shape.touched))
    while count >= 2:
        made = Cuts(_equal(shape, count), shape)
        if _at_ends(made, shape) <= ENDS * budget:
            return made
        count //= 2
    return None


def _equal(shape: Shape, count: int) -> list[range]:
    """`count` stretches of about equal bytes (and at least one operation)."""
    weights = list(accumulate(size + 1 for size in shape.sizes))
    ends = [int(np.searchsorted(weights, weights[-1] * (k + 1) / count)) + 1 for k in range(count - 1)]
    starts = [0, *sorted({e for e in ends if e < len(weights)})]
    return [range(shape.first + a, shape.first + b) for a, b in zip(starts, [*starts[1:], len(weights)], strict=True)]


def _at_ends(cuts: Cuts, shape: Shape) -> int:
    """Bytes kept at the ends of the stretches: what each touches and an operation behind it as well."""
    total = 0
    for stretch in cuts.stretches:
        for part in {p for op in stretch for p in shape.touched[op - shape.first]}:
            total += part[2] - part[1] if cuts.outlives(part, stretch) else 0
    return total


def fine(shape: Shape, cuts: Cuts, jumps: dict[int, float], budget: int) -> Cuts | None:
    """The same cuts with some stretches taken apart: those with the largest jumps (by their first operation) that fit.

    None where not even the first one fits.
    """
    room, apart = SINGLY * budget - _at_ends(cuts, shape), set()
    for start in sorted(jumps, key=lambda s: -abs(jumps[s]) if jumps[s] == jumps[s] else -np.inf):
        size = sum(shape.sizes[op - shape.first] for op in cuts.stretch(start))
        if size <= room:
            room -= size
            apart.add(start)
    if not apart:
        return None
    made = []
    for stretch in cuts.stretches:
        made += [range(op, op + 1) for op in stretch] if stretch.start in apart else [stretch]
    return Cuts(made, shape)


def first_touched(stretches: Iterable[range], operations: Sequence[Any], first: int) -> dict[int, list[Part]]:
    """A stretch's start -> the parts that no operation before it touches. operations: with `parts`."""
    seen: dict[int, Ranges] = {}
    found: dict[int, list[Part]] = {}
    for stretch in stretches:
        for op in stretch:
            for number, low, high in operations[op - first].parts:
                ranges = seen.setdefault(number, Ranges())
                if ranges.missing(low, high) == [(low, high)]:
                    found.setdefault(stretch.start, []).append((number, low, high))
                ranges.add(low, high)
    return found

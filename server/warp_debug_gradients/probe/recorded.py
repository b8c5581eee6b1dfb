"""What a recording holds: the operations of a tape, the arrays that each one touches, the writes in between."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .arrays import overlap
from .cuts import Part
from .registry import Ranges


@dataclass(slots=True)  # one for every argument of every operation
class Access:
    """One array of an operation. label: the kernel's argument ('u', 's.q'); 'src' and 'dest' of a copy.

    usage: (read, written, accumulated, neighbours), as in `access.Access`. base, number: its root, and the root's number.
    low, high: the bytes of the root that it can touch.
    """

    label: str
    array: Any
    usage: tuple[bool, bool, bool, bool]
    base: Any
    number: int
    low: int
    high: int

    @property
    def read(self) -> bool:
        return self.usage[0]

    @property
    def written(self) -> bool:
        return self.usage[1]

    @property
    def accumulated(self) -> bool:
        """Whether it is written by additions only."""
        return self.usage[2]

    @property
    def neighbours(self) -> bool:
        """Whether threads load other elements than their own."""
        return self.usage[3]

    @property
    def part(self) -> Part:
        return (self.number, self.low, self.high)


@dataclass(slots=True)
class Operation:
    """One entry of the tape."""

    index: int
    kernel: str
    place: dict[str, Any] | None
    accesses: list[Access]
    definition: dict[str, Any] | None = None
    disabled: bool = False

    @property
    def parts(self) -> list[Part]:
        """The bytes that it touches, each once."""
        return parts_of(a.part for a in self.accesses)

    def overwrites(self, access: Access) -> bool:
        """Whether it writes what it reads through `access`: by the same argument, or by another one on that memory."""
        return any(a.written and (a is access or overlap(a.array, access.array)) for a in self.accesses)


def parts_of(parts: Any) -> list[Part]:
    """The same bytes, each once: overlapping parts of a root become one."""
    listed = list(dict.fromkeys(parts))
    if len({number for number, _, _ in listed}) == len(listed):
        return listed
    merged: dict[int, Ranges] = {}
    for number, low, high in listed:
        merged.setdefault(number, Ranges()).add(low, high)
    return [(number, low, high) for number, ranges in merged.items() for low, high in ranges]


@dataclass
class Write:
    """A change of memory that the tape does not know: what did it, where, to which bytes.

    before_op: the next operation of the tape. span: the first and one-past-last byte it may have changed;
    the array may be another one over the same memory. callers: the user's lines that led there, innermost first.
    taping: whether a tape was recording then.
    """

    event: int
    what: str
    place: dict[str, Any] | None
    span: tuple[int, int]
    before_op: int
    callers: list[tuple[str, int]] = field(default_factory=list)
    taping: bool = True


@dataclass
class Read:
    """A look of the host at an array while the tape was recording. how: 'numpy', or the bridge to another framework.

    before_op: the next operation of the tape. serial: the array's number; made: how many arrays there were by then.
    followed: whether the array is the parameter, or an operation of the tape had written it.
    """

    event: int
    how: str
    place: dict[str, Any] | None
    before_op: int
    serial: int
    made: int
    followed: bool


@dataclass
class Recording:
    """What one run leaves: the operations of the tape and the writes in between."""

    tape: Any = None
    operations: list[Operation] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    views: list[Write] = field(default_factory=list)  # NumPy views taken: a write through one is seen by no hook
    reads: list[Read] = field(default_factory=list)  # looks of the host at arrays while the tape was open
    made_before: int = 0  # arrays that there were when the tape was entered
    missed: int = 0  # operations on the tape from before the recording began
    swept: int = 0  # operations on the tape when an earlier backward call ran over it
    reentered: bool = True  # ... and whether its `with` block was left and entered again since
    lines: set[tuple[str, int]] = field(default_factory=set)  # the user's lines that lead to recorded operations
    overflow: str | None = None  # why contents were not recorded any more: too many bytes of too few operations,
    held: int = 0  # this many
    held_ops: int = 0  # of the first so many

    @property
    def held_before(self) -> int:
        """Operations of an earlier iteration that are on the tape still: more was recorded behind them."""
        return self.missed or (self.swept if self.operations and self.swept <= self.operations[-1].index else 0)

    def at(self, op: int) -> Operation:
        """The operation at this position on the tape."""
        return self.operations[op - self.missed]

    def within(self, stretch: range) -> list[Operation]:
        """The operations at these consecutive positions on the tape."""
        return self.operations[stretch.start - self.missed : stretch.stop - self.missed]

    def only_off_tape(self, write: Write) -> dict[str, Any] | None:
        """The caller of a write whose own line is on the tape as well: the innermost that leads to no operation."""
        if not write.callers or write.callers[0] not in self.lines:
            return None
        found = next((at for at in write.callers[1:] if at not in self.lines), None)
        return {"file": found[0], "line": found[1]} if found else None

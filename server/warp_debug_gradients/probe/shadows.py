"""What every tape operation left behind: shadow copies of the arrays' memory, and how to go back in time.

A `Shadows` follows the memory of root arrays (views belong to their root: bytes are counted once). `sync`
compares a root with its shadow and keeps the *old* bytes of the range that changed, stamped with a position
on the tape; `undo` puts them back. Three runs of one program (at +h, at -h, unperturbed) that are undone in
step give the tangents of every array after and before every operation.

Positions: (op, WRITTEN) is what operation `op` wrote itself; (op, BEFORE) is what changed between the
operation before and this one, unrecorded. All bytes lie in an arena, a sparse nameless file: the heap stays small,
whatever the number of operations, and runs hand their recordings on without copying.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

BEFORE, WRITTEN = 0, 1
ARENA_BYTES = 32 << 30  # address space of one run's arena: a sparse file, as large on disk as what it holds
PAGE = mmap.PAGESIZE


class ArenaFull(Exception):
    """More bytes than an arena holds changed during the recording."""


class Arena:
    """Memory in a nameless file, shared with forked children: what one writes the others read, off the heap."""

    def __init__(self, folder: str):
        self.descriptor, path = tempfile.mkstemp(prefix=".arena-", dir=folder)
        os.unlink(path)
        os.ftruncate(self.descriptor, ARENA_BYTES)
        self._map = mmap.mmap(self.descriptor, ARENA_BYTES)
        self._used = 0

    def private(self) -> Arena:
        """The same contents, copied on write: changes stay in this process."""
        copy = object.__new__(Arena)
        copy.descriptor, copy._used = self.descriptor, self._used
        length = max(PAGE, -(-self._used // PAGE) * PAGE)  # no more: private pages count as memory promised
        copy._map = mmap.mmap(self.descriptor, length, access=mmap.ACCESS_COPY)
        return copy

    def allocate(self, size: int) -> int:
        """Offset of `size` new bytes; large blocks start on a page, so that they can be given back."""
        if size >= 4 * PAGE:
            self._used = -(-self._used // PAGE) * PAGE
        at = self._used
        if at + size > ARENA_BYTES:
            raise ArenaFull(f"more than {ARENA_BYTES >> 30} GiB of array contents changed")
        self._used = at + -(-size // 8) * 8
        return at

    def view(self, at: int, size: int) -> np.ndarray:
        """The bytes at an offset, writable, dtype uint8, shape (size,)."""
        return np.frombuffer(self._map, dtype=np.uint8, count=size, offset=at)

    def release(self, at: int, size: int) -> None:
        """Let go of private copies of these pages (they read as the file again)."""
        first, last = -(-at // PAGE) * PAGE, (at + size) // PAGE * PAGE
        if last > first and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED, first, last - first)


@dataclass
class Change:
    """One range of one root that changed at a position. `at`, `length`: the old bytes in the spool."""

    op: int
    phase: int
    root: int
    low: int
    high: int
    at: int


class Shadows:
    """Shadow copies of root arrays, by the root's number, and the log of their changes."""

    def __init__(self, arena: Arena):
        self.arena = arena
        self.place: dict[int, tuple[int, int]] = {}  # root -> offset and size in the arena
        self.bytes: dict[int, np.ndarray] = {}  # root -> uint8 view, shape (capacity,)
        self.log: list[Change] = []
        self.first_touch: dict[int, int] = {}

    def sync(self, root: int, array: Any, op: int, phase: int) -> bool:
        """Compare the root's memory with its shadow; log what changed. True where something did."""
        live = memory(array)
        known = self.bytes.get(root)
        if known is None:
            at = self.arena.allocate(live.size)
            self.place[root] = (at, live.size)
            self.bytes[root] = self.arena.view(at, live.size)
            self.bytes[root][:] = live
            self.first_touch[root] = op
            return False
        different = differing_range(known, live)
        if different is None:
            return False
        low, high = different
        at = self.arena.allocate(high - low)
        self.arena.view(at, high - low)[:] = known[low:high]
        self.log.append(Change(op, phase, root, low, high, at))
        known[low:high] = live[low:high]
        return True

    def pending(self, op: int, phase: int) -> set[int]:
        """The roots that `undo` at this position would change."""
        roots = set()
        for change in reversed(self.log):
            if (change.op, change.phase) != (op, phase):
                break
            roots.add(change.root)
        return roots

    def undo(self, op: int, phase: int) -> list[Change]:
        """Take back everything logged at (op, phase); positions must be undone last first. Returns what was."""
        undone = []
        while self.log and (self.log[-1].op, self.log[-1].phase) == (op, phase):
            change = self.log.pop()
            self.bytes[change.root][change.low : change.high] = self.arena.view(change.at, change.high - change.low)
            undone.append(change)
        return undone

    def forget_after(self, op: int) -> None:
        """Give back the memory of roots that no operation before `op` touches."""
        for root in [r for r, first in self.first_touch.items() if first >= op]:
            del self.first_touch[root]
            self.arena.release(*self.place[root])

    def clear(self) -> None:
        """Begin anew (another tape); the arena's space is not reused."""
        self.place.clear()
        self.bytes.clear()
        self.log.clear()
        self.first_touch.clear()

    def state(self) -> dict[str, Any]:
        """Everything but the bytes, for another process that shares the arena."""
        return {"place": self.place, "log": self.log, "first_touch": self.first_touch, "used": self.arena._used}

    @classmethod
    def from_state(cls, arena: Arena, state: dict[str, Any]) -> Shadows:
        """The shadows that another process recorded, as private copies of this one."""
        arena._used = state["used"]
        made = cls(arena.private())
        made.place, made.log, made.first_touch = dict(state["place"]), list(state["log"]), dict(state["first_touch"])
        made.bytes = {root: made.arena.view(at, size) for root, (at, size) in made.place.items()}
        return made


def renumbered(state: dict[str, Any], like: dict[str, Any]) -> dict[str, Any] | None:
    """The state of a run's shadows with the numbers that the same roots have in another run; None where they differ.

    Numbers count the arrays that were made: a solver that iterates until it converges makes more or fewer of them. The
    order in which the tape meets its roots is the same in all runs.
    """
    sizes, others = ([size for _, size in s["place"].values()] for s in (state, like))
    if sizes != others:
        return None
    number = dict(zip(state["place"], like["place"]))
    return {
        **state,
        "place": {number[root]: where for root, where in state["place"].items()},
        "log": [replace(change, root=number[change.root]) for change in state["log"]],
        "first_touch": {number[root]: op for root, op in state["first_touch"].items()},
    }


def memory(array: Any) -> np.ndarray:
    """A CPU array's own bytes as a live uint8 view, shape (capacity,)."""
    buffer = (ctypes.c_uint8 * array.capacity).from_address(array.ptr)
    return np.frombuffer(buffer, dtype=np.uint8)


def differing_range(a: np.ndarray, b: np.ndarray) -> tuple[int, int] | None:
    """[low, high) of the bytes that differ (rounded out to words), or None. Shapes (n,), dtype uint8."""
    n = a.size
    words = n // 8 * 8
    low = high = None
    if words:
        different = np.flatnonzero(a[:words].view(np.uint64) != b[:words].view(np.uint64))
        if different.size:
            low, high = int(different[0]) * 8, int(different[-1]) * 8 + 8
    if words < n and not np.array_equal(a[words:], b[words:]):
        low, high = words if low is None else low, n
    return None if low is None or high is None else (low, high)


def view_of(buffer: np.ndarray, root: Any, array: Any, dtype: np.dtype, inner: tuple[int, ...]) -> np.ndarray:
    """`array` (a view of `root`) seen in another copy of the root's bytes.

    dtype: the scalars' dtype. inner: shape of one element (() for scalars, (3,) for vec3). Shape of the
    result: array.shape + inner.
    """
    inner_strides = []
    stride = dtype.itemsize
    for size in reversed(inner):
        inner_strides.insert(0, stride)
        stride *= size
    return np.ndarray(
        shape=(*array.shape, *inner),
        dtype=dtype,
        buffer=buffer,
        offset=array.ptr - root.ptr,
        strides=(*array.strides, *inner_strides),
    )

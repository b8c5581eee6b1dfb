"""What every tape operation left behind: shadow copies of the arrays' memory, and how to go back in time.

A `Shadows` follows the memory of root arrays (views belong to their root: bytes are counted once). `sync` compares
a range of a root with its shadow and keeps the *old* bytes that changed, stamped with a position on the tape;
`undo` puts them back. Three runs of one program (at +h, at -h, unperturbed) that are undone in step give the
tangents of every array after and before every operation.

Positions: (op, WRITTEN) is what operation `op` wrote itself; (op, BEFORE) is what changed between the
operation before and this one, unrecorded. A stretch of operations that is recorded at its end only (`cuts`) has
the position of its first operation. All bytes lie in an arena, sparse nameless memory: the heap stays small, runs
hand their recordings on without copying, and what an arena may hold is bounded. Zeros take no space.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
from typing import Any, NamedTuple

import numpy as np

from .registry import Ranges

BEFORE, WRITTEN = 0, 1
ADDRESSES = 32 << 30  # address space of one run's arena: a sparse file, as large as what it holds
PAGE = mmap.PAGESIZE
COMPARED_WHOLE = 4096  # bytes up to which nobody looks for the part that changed
NEARLY_ALL = 0.75  # of a root: a change of more is kept as one of the whole root, which is undone without copying
ZEROS = -1  # where a change has its old bytes if they were zero
FEW_ZEROS = 4096  # bytes that are compared with zeros at hand

LIBC = ctypes.CDLL(None)
_few_zeros = ctypes.create_string_buffer(FEW_ZEROS)
_zeros_at = ctypes.addressof(_few_zeros)
_memcmp = LIBC.memcmp
_memcmp.argtypes, _memcmp.restype = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t), ctypes.c_int
_pwrite = LIBC.pwrite
_pwrite.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64)
_pwrite.restype = ctypes.c_ssize_t


class ArenaFull(Exception):
    """More bytes than an arena may hold changed during the recording."""


class Arena:
    """Memory in a nameless file, shared with forked children: what one writes the others read, off the heap."""

    def __init__(self, folder: str, limit: int = ADDRESSES):
        self.descriptor = _nameless_file(folder)
        os.ftruncate(self.descriptor, ADDRESSES)
        self.limit = limit  # bytes that it may hold
        self.held = 0
        self._map = mmap.mmap(self.descriptor, ADDRESSES)
        self.address = np.frombuffer(self._map, dtype=np.uint8, count=1).ctypes.data
        self._used = 0

    def private(self, used: int) -> Arena:
        """The same contents up to an offset, copied on write: changes stay in this process."""
        copy = object.__new__(Arena)
        copy.descriptor, copy.limit, copy.held, copy._used = self.descriptor, self.limit, self.held, used
        length = max(PAGE, -(-used // PAGE) * PAGE)  # no more: private pages count as memory promised
        copy._map = mmap.mmap(self.descriptor, length, access=mmap.ACCESS_COPY)
        copy.address = np.frombuffer(copy._map, dtype=np.uint8, count=1).ctypes.data
        return copy

    def resume(self, used: int, held: int) -> None:
        """Go on behind what another process has left here."""
        self._used, self.held = used, held

    def clear(self) -> None:
        """Empty: every page is given back, and reads as zero."""
        os.ftruncate(self.descriptor, 0)
        os.ftruncate(self.descriptor, ADDRESSES)
        self.held = self._used = 0

    def reserve(self, size: int) -> int:
        """Offset of `size` bytes that read as zero and take no space; large blocks start on a page."""
        if size >= PAGE:
            self._used = -(-self._used // PAGE) * PAGE
        at = self._used
        if at + size > ADDRESSES:
            raise ArenaFull(f"the arrays span more than {ADDRESSES >> 30} GiB")
        self._used = at + -(-size // 8) * 8
        return at

    def hold(self, size: int) -> None:
        """Count bytes that are about to be written."""
        self.held += size
        if self.held > self.limit:
            raise ArenaFull(f"more than {self.limit / (1 << 20):.0f} MiB of array contents changed")

    def write(self, at: int, address: int, size: int) -> None:
        """Copy bytes of memory to an offset. Not in a private copy."""
        if size < PAGE or _pwrite(self.descriptor, address, size, at) != size:  # a fault for each page costs more
            ctypes.memmove(self.address + at, address, size)

    @property
    def used(self) -> int:
        return self._used

    def view(self, at: int, size: int) -> np.ndarray:
        """The bytes at an offset, writable, dtype uint8, shape (size,)."""
        return np.frombuffer(self._map, dtype=np.uint8, count=size, offset=at)

    def release(self, at: int, size: int) -> None:
        """Let go of private copies of the whole pages in a range (they read as the file again)."""
        first, last = -(-at // PAGE) * PAGE, (at + size) // PAGE * PAGE
        if last > first and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED, first, last - first)


class Change(NamedTuple):
    """One range of one root that changed at a position. at: offset of the old bytes in the arena, or ZEROS."""

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
        self.log: list[Change] = []
        self.first_touch: dict[int, int] = {}  # root -> the operation that met it first
        self._seen: dict[int, Ranges] = {}  # what has been looked at of a root, where that is not all of it
        self._blank: set[int] = set()  # roots that have been zero so far: their shadow has no memory yet
        self._views: dict[int, np.ndarray] | None = None

    @property
    def bytes(self) -> dict[int, np.ndarray]:
        """Root -> uint8 view, shape (capacity,). Made when first asked for: a run that records needs none."""
        if self._views is None:
            self._views = {root: self.arena.view(at, size) for root, (at, size) in self.place.items()}
        return self._views

    def sync(self, root: int, array: Any, op: int, phase: int, low: int = 0, high: int | None = None) -> bool:
        """Compare bytes [low, high) of the root with its shadow; log what changed. True where something did."""
        pointer, known = array.ptr, self.place.get(root)
        if known is None:
            known = self._enter(root, array.capacity, op)
            if low == 0 and (high is None or high == known[1]):
                self._take(root, pointer, 0, known[1])
                return False
            self._seen[root] = Ranges()
        at, size = known
        if high is None:
            high = size
        if root in self._seen and self._look(root, pointer, low, high):
            return False
        blank = root in self._blank
        if blank:
            same = is_zero(pointer + low, high - low)
        else:
            same = _memcmp(pointer + low, self.arena.address + at + low, high - low) == 0
        if not same:
            self._log(root, pointer, op, phase, low, high, blank)
        return not same

    def sync_seen(self, root: int, array: Any, op: int, phase: int) -> None:
        """`sync` for all of a root that has been looked at so far."""
        if root not in self._seen:
            self.sync(root, array, op, phase)
            return
        for low, high in list(self._seen[root]):
            self.sync(root, array, op, phase, low, high)

    def _enter(self, root: int, size: int, op: int) -> tuple[int, int]:
        self.first_touch[root] = op
        place = self.place[root] = (self.arena.reserve(size), size)
        self._blank.add(root)
        self._views = None
        return place

    def _take(self, root: int, pointer: int, low: int, high: int) -> None:
        """The shadow's first content of a range."""
        if not is_zero(pointer + low, high - low):
            self.arena.hold(high - low)
            self.arena.write(self.place[root][0] + low, pointer + low, high - low)
            self._blank.discard(root)

    def _look(self, root: int, pointer: int, low: int, high: int) -> bool:
        """Take what has not been looked at yet as it is: it was so all along. True where that is the whole range."""
        seen = self._seen[root]
        missing = seen.missing(low, high)
        for first, last in missing:
            self._take(root, pointer, first, last)
        seen.add(low, high)
        if seen.covers(0, self.place[root][1]):
            del self._seen[root]
        return missing == [(low, high)]

    def _log(self, root: int, pointer: int, op: int, phase: int, low: int, high: int, blank: bool) -> None:
        (place, size), whole = self.place[root], high - low
        address = self.arena.address + place
        self._blank.discard(root)
        blank = blank or is_zero(address + low, whole)
        if whole > COMPARED_WHOLE and not (blank and whole == size):
            changed = differing_range(self.arena.view(place + low, whole), _bytes_at(pointer + low, whole))
            assert changed is not None
            if changed[1] - changed[0] < NEARLY_ALL * size or whole < size:
                low, high = low + changed[0], low + changed[1]
        self.arena.hold(high - low)
        at = ZEROS
        if not blank and high - low == size:  # the old bytes stay where they are
            at, place = place, self.arena.reserve(size)
            self.place[root], self._views = (place, size), None
        elif not blank:
            at = self.arena.reserve(high - low)
            self.arena.write(at, address + low, high - low)
        self.log.append(Change(op, phase, root, low, high, at))
        self.arena.write(place + low, pointer + low, high - low)

    def pending(self, op: int, phase: int) -> dict[int, list[tuple[int, int]]]:
        """What `undo` at this position would change: the root -> its ranges."""
        found: dict[int, list[tuple[int, int]]] = {}
        for change in reversed(self.log):
            if (change.op, change.phase) != (op, phase):
                break
            found.setdefault(change.root, []).append((change.low, change.high))
        return found

    def undo(self, op: int, phase: int) -> None:
        """Take back everything logged at (op, phase); positions must be undone last first. Not in the run that records."""
        while self.log and (self.log[-1].op, self.log[-1].phase) == (op, phase):
            change = self.log.pop()
            root, size = change.root, change.high - change.low
            if size == self.place[root][1]:  # copies nothing
                self.bytes[root] = _zeros(size) if change.at == ZEROS else self.arena.view(change.at, size)
                continue
            if not self.bytes[root].flags.writeable:
                self.bytes[root] = self.bytes[root].copy()
            old = 0 if change.at == ZEROS else self.arena.view(change.at, size)
            self.bytes[root][change.low : change.high] = old

    def holds(self, root: int, array: Any, low: int, high: int) -> bool:
        """Whether the array's memory is what it was at this position."""
        return _memcmp(array.ptr + low, self.bytes[root].ctypes.data + low, high - low) == 0

    def drop(self, root: int) -> None:
        """Nothing is known of the root any more."""
        self.bytes.pop(root, None)

    def forget(self, root: int, low: int, high: int) -> None:
        """Give back the private memory of a range that nobody asks for any more."""
        if root in self.bytes:
            at, size = self.place[root]
            if high - low == size:
                del self.bytes[root]
            self.arena.release(at + low, high - low)

    def clear(self) -> None:
        """Begin anew (another tape)."""
        self.place.clear()
        self._views = None
        self.log.clear()
        self.first_touch.clear()
        self._seen.clear()
        self._blank.clear()
        self.arena.clear()

    def state(self) -> dict[str, Any]:
        """Everything but the bytes, for another process that shares the arena."""
        own = {"place": self.place, "log": self.log, "first_touch": self.first_touch}
        return {**own, "used": self.arena.used, "held": self.arena.held}

    def take_over(self, state: dict[str, Any]) -> None:
        """Have the state that another process has made of this one."""
        self.place, self.log, self.first_touch = state["place"], state["log"], state["first_touch"]
        self.arena.resume(state["used"], state["held"])
        self._views = None

    @classmethod
    def from_state(cls, arena: Arena, state: dict[str, Any]) -> Shadows:
        """The shadows that another process recorded, as private copies of this one."""
        made = cls(arena.private(state["used"]))
        made.place, made.log, made.first_touch = dict(state["place"]), list(state["log"]), state["first_touch"]
        return made


def _nameless_file(folder: str) -> int:
    """Descriptor of a file that has no name: in memory where the system has such files, else in the folder."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(".arena-", os.MFD_CLOEXEC)
    descriptor, path = tempfile.mkstemp(prefix=".arena-", dir=folder)
    os.unlink(path)
    return descriptor


def memory(array: Any) -> np.ndarray:
    """A CPU array's own bytes as a live uint8 view, shape (capacity,)."""
    return _bytes_at(array.ptr, array.capacity)


def _bytes_at(address: int, size: int) -> np.ndarray:
    buffer = (ctypes.c_uint8 * size).from_address(address)
    return np.frombuffer(buffer, dtype=np.uint8)  # pyright: ignore


def _zeros(size: int) -> np.ndarray:
    """Zeros that all share one memory: not to be written."""
    if _shared_zeros[0].size < size:
        _shared_zeros[0] = np.zeros(size, np.uint8)
        _shared_zeros[0].flags.writeable = False
    return _shared_zeros[0][:size]


_shared_zeros = [np.zeros(0, np.uint8)]


def is_zero(address: int, size: int) -> bool:
    """Whether every byte is zero: of more than a few, the first is, and each equals the next."""
    if size <= FEW_ZEROS:
        return _memcmp(address, _zeros_at, size) == 0
    return ctypes.c_uint8.from_address(address).value == 0 and _memcmp(address, address + 1, size - 1) == 0


def differing_range(a: np.ndarray, b: np.ndarray) -> tuple[int, int] | None:
    """[low, high) of the bytes that differ (rounded out to words), or None. Shapes (n,), dtype uint8."""
    n = a.size
    words = n // 8 * 8
    low = high = None
    different = a[:words].view(np.uint64) != b[:words].view(np.uint64)
    if different.any():
        low, high = int(different.argmax()) * 8, words - int(different[::-1].argmax()) * 8
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

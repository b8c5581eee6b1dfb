"""What a tape holds: operations, the arrays they read first (leaves), and where each was first used."""

from __future__ import annotations

import weakref
from collections import Counter, OrderedDict, deque
from typing import Any, Callable

from .arrays import arrays_in, is_array
from .registry import SERIAL, LaunchArguments, Ranges, root, span
from .reported import ScalarOps, is_scalar

RECENT = 64  # arrays that a tape wrote last, and those without a gradient that it read last
REMEMBERED = 1000  # contents of an array that were read outside a tape
SHOWN = -1  # in the place of an event: the host was given the memory, and may read it unseen


class TapeState:
    """One recording of a tape, from the first operation after it was made or reset."""

    def __init__(self) -> None:
        self.enter_event = -1
        self.exit_event = -1
        self.enter_place: dict[str, Any] | None = None
        self.recording = False  # inside its `with`
        self.swept = False  # a backward pass ran over it since it was entered
        self.emptied: dict[str, Any] | None = None  # where operations were dropped while it recorded
        self.ops = 0
        self.kernels: Counter[str] = Counter()
        self.leaves: dict[int, Any] = {}  # first byte -> array read before anything on the tape wrote it
        self.first_use: dict[int, tuple[int, int]] = {}  # root's first byte -> (event, last write before it)
        self.written = Ranges()
        self.outputs: dict[int, Any] = {}  # first byte -> array written and not read since
        self.recent: OrderedDict[int, Any] = OrderedDict()  # first byte -> array written, the last ones
        self.constants: OrderedDict[int, Any] = OrderedDict()  # the same, read and without a gradient
        self.scalars = ScalarOps()

    def entered(self) -> None:
        """Its `with` begins. After a backward pass without reset it keeps its operations, but the program runs new ones;
        before one, this is another part of the same recording."""
        if self.swept:
            self.first_use.clear()
        self.swept, self.recording = False, True

    def record(self, event: int, name: str, arrays: list[tuple[Any, bool, bool]], last_write: dict[int, int]) -> None:
        """Add one operation: its arrays as (array, read, written)."""
        self.ops += 1
        self.kernels[name] += 1
        ranges = self.written
        for array, read, written in arrays:
            start = array.ptr
            if read and array.size == 1 and not written and is_scalar(array):
                serial = root(array).__dict__.get(SERIAL, -1)
                self.scalars.readers[serial] = self.scalars.readers.get(serial, 0) + 1
            base = start if array._ref is None else root(array).ptr
            if base not in self.first_use:
                self.first_use[base] = (event, last_write.get(base, -1))
            if read:
                self.outputs.pop(start, None)
                if array._grad is None:
                    _keep_last(self.constants, array)
                elif start not in self.leaves and not ranges.touches(*span(array)):
                    self.leaves[start] = array
        for array, _, written in arrays:
            if written:
                ranges.add(*span(array))
                if array._grad is not None:
                    self.outputs[array.ptr] = array
                    _keep_last(self.recent, array)


def _keep_last(arrays: OrderedDict[int, Any], array: Any) -> None:
    arrays[array.ptr] = array
    arrays.move_to_end(array.ptr)
    if len(arrays) > RECENT:
        arrays.popitem(last=False)


def recorded_arrays(function: Callable[..., Any], arrays: Any) -> list[tuple[Any, bool, bool]]:
    """(array, read, written) of a recorded function: exact for Warp's own copies, else both for all."""
    source = dest = None
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    for name, cell in zip(names, getattr(function, "__closure__", None) or (), strict=False):
        try:
            value = cell.cell_contents
        except ValueError:
            continue
        if name == "src":
            source = value
        elif name == "dest":
            dest = value
    if is_array(source) and is_array(dest):
        return [(source, True, False), (dest, False, True)]
    return [(array, True, True) for value in arrays or () for _, array in arrays_in(value)]


class Tapes:
    """The recordings of all living tapes; a tape that the program drops is dropped here too."""

    def __init__(self, arguments: LaunchArguments):
        self.arguments = arguments
        self._states: dict[int, tuple[weakref.ref, TapeState]] = {}
        self.last_write: dict[int, int] = {}  # root's first byte -> event of its last write that we saw
        self.first_touch: dict[int, int] = {}  # ... of its first read outside a tape since then
        self.earlier_touches: dict[int, deque[int]] = {}  # the same, of the contents that it had before
        self.host: set[int] = set()  # first bytes of what the host was given, and may read unseen
        self.last_reset: dict[int, int] = {}  # the same, of fills, assignments and copies only
        self.intermediates: set[int] = set()  # numbers of arrays that some tape wrote

    def of(self, tape: Any) -> TapeState:
        known = self._states.get(id(tape))
        if known is None or known[0]() is not tape:
            key = id(tape)
            known = (weakref.ref(tape, lambda _, key=key: self._states.pop(key, None)), TapeState())
            self._states[key] = known
        return known[1]

    def forget(self, tape: Any) -> None:
        """The tape was reset: its next recording is a new one."""
        self._states.pop(id(tape), None)

    def empty(self, tape: Any, place: dict[str, Any] | None) -> None:
        """The tape was reset by the program at `place`; inside its `with`, what it held so far is lost."""
        before = self.of(tape)
        self.forget(tape)
        if before.recording:
            now = self.of(tape)
            now.recording, now.emptied = True, place if before.ops else before.emptied

    def launch(self, event: int, kernel: Any, arrays: list[tuple[Any, bool, bool]], tape: Any | None) -> None:
        """Note a launch and its arrays as (array, read, written)."""
        if tape is not None:
            self.record(tape, event, kernel.key, arrays)
        else:
            for array, read, _ in arrays:
                if read:
                    self.first_touch.setdefault(root(array).ptr, event)
        for array, _, written in arrays:
            if written:
                self._wrote(event, root(array).ptr)

    def pass_by(self, tape: Any, event: int, arrays: list[tuple[Any, bool, bool]]) -> None:
        """Note a launch inside a tape that the tape does not record: the tape's own window begins no later than here."""
        first_use = self.of(tape).first_use
        for base in {root(array).ptr for array, _, written in arrays if not written}:
            first_use.setdefault(base, (event, self.last_write.get(base, -1)))

    def record(self, tape: Any, event: int, name: str, arrays: list[tuple[Any, bool, bool]]) -> None:
        """Add an operation to a tape's recording."""
        self.of(tape).record(event, name, arrays, self.last_write)
        for array, _, written in arrays:
            if written and array._grad is not None:
                self.intermediates.add(array.__dict__.get(SERIAL, -1))

    def wrote(self, event: int, array: Any) -> None:
        """Note a write by the host, a fill, a copy or a creation."""
        if is_array(array):
            self._wrote(event, root(array).ptr)

    def _wrote(self, event: int, base: int) -> None:
        self.last_write[base] = event
        touch = self.first_touch.pop(base, event)
        if touch != event:  # a launch that reads and writes it is an update
            self.earlier_touches.setdefault(base, deque(maxlen=REMEMBERED)).append(touch)

    def written_since(self, event: int, state: TapeState) -> bool:
        """Whether an array that the recording touched was written after the event."""
        return any(self.last_write.get(base, -1) > event for base in state.first_use)

    def touched(self, event: int, array: Any) -> None:
        """Note a read by a copy."""
        if is_array(array):
            self.first_touch.setdefault(root(array).ptr, event)

    def shown(self, array: Any) -> None:
        """Note that the host was given the memory: it may read it at any time."""
        if is_array(array):
            self.host.add(root(array).ptr)

    def first_touch_of(self, array: Any) -> int | None:
        """The event of the first read outside a tape since the last write; None: there was none, for certain."""
        base = root(array)
        return SHOWN if base.deleter is None or base.ptr in self.host else self.first_touch.get(base.ptr)

    def touches_of(self, array: Any) -> list[int]:
        """The events of the first read outside a tape of each content that the array had, those remembered."""
        base = root(array).ptr
        return [*self.earlier_touches.get(base, ()), *([self.first_touch[base]] if base in self.first_touch else [])]

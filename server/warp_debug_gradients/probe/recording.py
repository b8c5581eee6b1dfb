"""One run of an iteration that keeps what every tape operation reads and leaves behind.

`Recorder` is the listener of a forked child: it adds the perturbation, follows the tape, and ends at the
backward call in question. The same recorder runs at +h, at -h and unperturbed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable

import numpy as np

from . import names
from .arrays import arrays_in, extent, first_scalar, is_array, overwrite, scalars
from .hooks import Event
from .registry import Registry, root
from .shadows import BEFORE, WRITTEN
from .tapes import recorded_arrays
from .trace import LAUNCHES, Watch
from .warp_gradcheck import is_disabled

WRITES = {"zero_": "zero_()", "fill_": "fill_()", "assign": "assign()", "copy": "wp.copy"}


@dataclass
class Access:
    """One array of an operation. label: the kernel's argument ('u', 's.q'); 'src' and 'dest' of a copy."""

    label: str
    array: Any
    read: bool
    written: bool
    accumulated: bool = False


@dataclass
class Operation:
    """One entry of the tape."""

    index: int
    kernel: str
    place: dict[str, Any] | None
    accesses: list[Access]
    definition: dict[str, Any] | None = None
    disabled: bool = False

    @property
    def roots(self) -> dict[int, Any]:
        """The root arrays that the operation touches, by id of their memory's first byte."""
        return {r.ptr: r for r in (root(a.array) for a in self.accesses)}


@dataclass
class Write:
    """A change of memory that the tape does not know: what did it, where, to which bytes.

    before_op: the next operation of the tape. span: the first and one-past-last byte it may have changed;
    the array may be another one over the same memory. callers: the user's lines that led there, innermost first.
    """

    event: int
    what: str
    place: dict[str, Any] | None
    span: tuple[int, int]
    before_op: int
    callers: list[tuple[str, int]] = field(default_factory=list)


@dataclass
class Recording:
    """What one run leaves: the operations of the tape and the writes in between."""

    tape: Any = None
    operations: list[Operation] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    views: list[Write] = field(default_factory=list)  # NumPy views taken: a write through one is seen by no hook
    missed: int = 0  # operations on the tape from before the recording began
    swept: int = 0  # operations on the tape when an earlier backward call ran over it
    reentered: bool = True  # ... and whether its `with` block was left and entered again since

    @property
    def held_before(self) -> int:
        """Operations of an earlier iteration that are on the tape still: more was recorded behind them."""
        return self.missed or (self.swept if self.operations and self.swept <= self.operations[-1].index else 0)

    lines: set[tuple[str, int]] = field(default_factory=set)  # the user's lines that lead to recorded operations

    def only_off_tape(self, write: Write) -> dict[str, Any] | None:
        """The caller of a write whose own line is on the tape as well: the innermost that leads to no operation."""
        if not write.callers or write.callers[0] not in self.lines:
            return None
        found = next((at for at in write.callers[1:] if at not in self.lines), None)
        return {"file": found[0], "line": found[1]} if found else None


class Recorder:
    """Listener: perturb, record, stop at the backward call `target`."""

    def __init__(
        self,
        item: dict[str, Any] | None,
        target: int,
        first_call: int,
        watch: Watch,
        shadows: Any,
        argument_access: Callable,
        at_target: Callable[[Recorder, Event], None],
        answer: Callable[[str], None],
        detailed: bool,
    ):
        self.item = item
        self.target = target
        self.call = first_call
        self.wp = watch.wp
        self.registry: Registry = watch.registry
        self.origins: names.Origins = watch.origins
        self.shadows = shadows
        self.at_target = at_target
        self.answer = answer  # sends a failure and ends the process
        self.early_loss: dict[str, Any] | None = None  # where a loss array still holds what the tape left in it
        self.early_value: float | None = None
        self.detailed = detailed  # places and names too: the unperturbed run
        self.recording = Recording()
        self.roots: dict[int, Any] = {}  # number of a root -> the root (kept alive)
        self._access = argument_access
        self._before_count = 0
        self._touched: list[Access] = []

    # -- hook interface ------------------------------------------------------------------------

    def created(self, array: Any) -> None:
        self.registry.created(array)

    def recorded_function(self, function: Callable, arrays: Any) -> None:
        pass  # seen as a new entry of the tape when its event ends

    def before(self, event: Event) -> None:
        if self.item is not None and self.item["event"] == event.index:
            self._perturb()
        if self.early_loss is not None and self.early_loss["event"] == event.index:
            loss = self.registry.find(self.early_loss["serial"])
            self.early_value = first_scalar(loss) if loss is not None else None
        new = event.subject is not self.recording.tape or event.replay is not None
        if (event.kind == "tape_enter" and new) or (event.kind == "tape_reset" and not new):
            self._begin(event.subject, event.replay is not None)
        elif event.kind == "tape_enter":
            self.recording.reentered = True
        elif event.kind == "backward":
            if self.call == self.target:
                self.at_target(self, event)
            elif event.subject is self.recording.tape:
                self.recording.swept, self.recording.reentered = len(event.subject.launches), False
            return
        self._touched = self._accesses(event)
        tape = event.tape
        if tape is self.recording.tape and tape is not None:
            self._before_count = event.replay.entries.start if event.replay is not None else len(tape.launches)
            for access in self._touched:
                if event.kind in LAUNCHES or self.number(root(access.array)) in self.roots:
                    self._sync(access.array, self._before_count, BEFORE)  # else new memory, not yet given a content

    def after(self, event: Event) -> None:
        if event.kind == "backward":
            self.call += 1
            return
        tape = self.recording.tape
        if tape is None:
            return
        if event.tape is not tape:
            recorded = []
        elif event.replay is not None:
            recorded = [tape.launches[k] for k in event.replay.entries if k < len(tape.launches)]
        else:
            recorded = tape.launches[self._before_count :]
        if recorded:
            self._add(event, recorded)
        elif self._touched and self.detailed:
            self._note_write(event)
        elif self.detailed and event.kind == "numpy" and is_array(event.subject):
            place = names.place(self.origins.frame(3))
            taken = Write(event.index, "a NumPy view", place, extent(event.subject), len(tape.launches))
            self.recording.views.append(taken)
        self._touched = []

    # -- parts ---------------------------------------------------------------------------------

    def _perturb(self) -> None:
        assert self.item is not None
        array = self.registry.find(self.item["serial"])
        if array is None:
            raise LookupError("the parameter's array does not exist where it should be perturbed")
        values = scalars(array)
        if "peek" in self.item:
            self.item["peek"](values)
            return
        overwrite(array, (values.astype(np.float64) + self.item["delta"]).astype(values.dtype))

    def _begin(self, tape: Any, replayed: bool = False) -> None:
        """A tape is entered for the first time: what was recorded of another one is not needed."""
        self.shadows.clear()
        self.roots.clear()
        self.recording = Recording(tape=tape, missed=0 if replayed else len(tape.launches))
        self._before_count = self.recording.missed

    def enter_open_tape(self) -> None:
        """The program stands inside a tape's `with` block already: what is on it was recorded before."""
        runtime = self.wp._src.context.runtime
        if runtime is not None and runtime.tape is not None:
            self._begin(runtime.tape)
            self.recording.reentered = False

    def number(self, base: Any) -> int:
        """The root's number (equal in all runs), or its address where it has none."""
        serial = self.registry.serial(base)
        return serial if serial >= 0 else -int(base.ptr)

    def _sync(self, array: Any, op: int, phase: int) -> None:
        base = root(array)
        if not base.device.is_cpu or not base.capacity:
            return
        number = self.number(base)
        self.roots[number] = base
        self.shadows.sync(number, base, op, phase)

    def _accesses(self, event: Event) -> list[Access]:
        kind = event.kind
        if kind in LAUNCHES:
            return self._launch_accesses(event.subject, *event.launch_arguments)
        if kind == "record_func":
            arrays = [a for value in event.argument(2, "arrays") or () for _, a in arrays_in(value)]
            return [Access(f"arrays[{k}]", array, True, True) for k, array in enumerate(arrays)]
        if kind in ("copy", "assign"):
            source = event.argument(1, "src")
            found = [Access("dest", event.subject, False, True)] if is_array(event.subject) else []
            return found + ([Access("src", source, True, False)] if is_array(source) else [])
        if kind in ("zero_", "fill_") and is_array(event.subject):
            return [Access(kind, event.subject, False, True)]
        if kind == "native":
            return [Access(name, a, not written, written) for name, a, written in event.native_arguments if is_array(a)]
        return []

    def _launch_accesses(self, kernel: Any, inputs: Any, outputs: Any) -> list[Access]:
        try:
            access = self._access(kernel)
        except Exception:  # what cannot be derived counts as read and written
            access = {}
        found = []
        for argument, value in zip(kernel.adj.args, [*inputs, *outputs]):
            if value is None or isinstance(value, (int, float)):
                continue
            for path, array in arrays_in(value):
                label = f"{argument.label}.{path}" if path else argument.label
                how = access.get(label)
                if how is None:
                    found.append(Access(label, array, True, True))
                elif how.read or how.written:
                    only_added = bool(how.accumulated and not how.loaded and not how.stored)
                    found.append(Access(label, array, how.read, how.written, only_added))
        return found

    def _add(self, event: Event, entries: list[Any]) -> None:
        place = None
        if self.detailed:
            place = self._place(event)
            self.recording.lines.update(self.origins.own_lines(self.origins.frame(3)))
        for offset, entry in enumerate(entries):
            index = self._before_count + offset
            if callable(entry):
                copied = recorded_arrays(entry, ())
                accesses = [Access("src" if r else "dest", a, r, w) for a, r, w in copied] or self._touched
                operation = Operation(index, "array copy" if copied else "recorded function", place, accesses)
            else:
                kernel = entry[0]
                accesses = self._launch_accesses(kernel, entry[3] or (), entry[4] or ())
                operation = Operation(index, kernel.key, place, accesses, _definition(kernel), is_disabled(kernel))
            self.recording.operations.append(operation)
            for access in accesses:
                self._sync(access.array, index, WRITTEN)

    def _place(self, event: Event) -> dict[str, Any] | None:
        """The user's line: of the call itself, or of the one that a captured graph makes again."""
        return event.replay.place if event.replay is not None else self.origins.located(self.origins.frame(4))

    def _note_write(self, event: Event) -> None:
        """A launch or a fill outside the tape changed memory that the tape may have read."""
        place, callers = None, self.origins.own_lines(self.origins.frame(3))
        for access in self._touched:
            if access.written:
                place = place or self._place(event)
                what = _what(event)
                operations = self.recording.operations
                count = operations[-1].index + 1 if operations else self.recording.missed
                self.recording.writes.append(Write(event.index, what, place, extent(access.array), count, callers))

    def program_ended(self, message: str | None, reason: str | None = None) -> None:
        """The user's program ended before its backward call was reached."""
        self.answer(message or "the program ended before its backward call was reached")

    def finish(self) -> None:
        """Catch what changed after the last operation, before backward."""
        count = len(self.recording.tape.launches) if self.recording.tape is not None else 0
        for number, base in self.roots.items():
            self.shadows.sync(number, base, count, BEFORE)

    def objective(self, event: Event) -> float:
        """The loss that this backward call is handed; nan where it is seeded by arrays."""
        if self.early_value is not None:
            return self.early_value
        loss = event.argument(1, "loss")
        return first_scalar(loss) if is_array(loss) else float("nan")


def _what(event: Event) -> str:
    """What a write that no tape records is called."""
    if event.kind == "native":
        return f"wp.utils.{event.function.__name__}"
    if event.kind in LAUNCHES:
        recorded = ", a recorded command (record_cmd)" if event.kind == "command" else ""
        return f"kernel {event.subject.key}{recorded}"
    return WRITES[event.kind]


def _definition(kernel: Any) -> dict[str, Any] | None:
    code = getattr(getattr(kernel, "func", None), "__code__", None)
    return {"file": code.co_filename, "line": code.co_firstlineno} if code is not None else None

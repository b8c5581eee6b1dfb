"""One run of an iteration that keeps what every tape operation reads and leaves behind.

`Recorder` is the listener of a forked child: it adds the perturbation, follows the tape, and ends at the
backward call in question. The same recorder runs at +h, at -h and unperturbed.
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from . import names
from .arrays import arrays_in, extent, first_scalar, is_array, overwrite, scalars
from .cuts import Cuts, Part, Shape
from .events import Event
from .recorded import Access, Operation, Read, Recording, Write
from .registry import SERIAL, Registry, root, span
from .shadows import BEFORE, WRITTEN, ArenaFull, Shadows, is_zero
from .tapes import recorded_arrays
from .trace import LAUNCHES, Watch
from .warp_gradcheck import is_disabled

LOOKS = frozenset({"numpy", "bridge"})
SILENT = frozenset({"create", "numpy", "bridge", "tape_enter", "tape_exit", "tape_zero", "tape_reset"})
FILLS = frozenset({"zero_", "fill_"})  # on no tape
# `Access.usage`: of what is only read or only written, and of what may be both, where no source tells
READ, WRITE, UNDERIVED = (True, False, False, False), (False, True, False, False), (True, True, False, False)
WRITES = {"zero_": "zero_()", "fill_": "fill_()", "assign": "assign()", "copy": "wp.copy"}


class Recorder:
    """Listener: perturb, record, stop at the backward call `target`."""

    def __init__(
        self,
        item: dict[str, Any] | None,
        target: int,
        first_call: int,
        watch: Watch,
        shadows: Shadows | None,
        at_target: Callable[[Recorder, Event], None],
        answer: Callable[[str], None],
        detailed: bool,
        cuts: Cuts | None = None,
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
        self.parameter = -1  # the number of its array
        self.early_loss: dict[str, Any] | None = None  # where a loss array still holds what the tape left in it
        self.early_value: float | None = None
        self.detailed = detailed  # places and names too: the unperturbed run
        self.recording = Recording()
        self.roots: dict[int, Any] = {}  # number of a root -> the root (kept alive)
        self.blank: dict[Part, bool] = {}  # of a tape in stretches: whether a part was all zero when first met
        self.cuts = cuts  # how a long tape is recorded; None: every operation singly
        self._arguments = watch.tapes.arguments
        self._before_count = 0
        self.paths: dict[int, str] | None = None  # by serial: see writers.path_of
        self._touched: list[Access] = []
        self._numbers: dict[int, int] = {}
        self._meets = False  # whether the tape meets the arrays of this event
        self.created = watch.registry.created  # the hook, of every array: be quick
        self._inside: dict[Part, Access] = {}  # what the stretch that is being recorded has touched

    # -- hook interface ------------------------------------------------------------------------

    @property
    def creations(self) -> set[int]:
        """The events that are told though they create an array: of others only the array is."""
        return {each["event"] for each in (self.item, self.early_loss) if each is not None}

    def recorded_function(self, tape: Any, function: Callable[..., Any], arrays: Any) -> None:
        pass  # seen as a new entry of the tape when its event ends

    def before(self, event: Event) -> None:
        if self.item is not None and self.item["event"] == event.index:
            self._perturb()
        if self.early_loss is not None and self.early_loss["event"] == event.index:
            loss = self.registry.find(self.early_loss["serial"])
            self.early_value = first_scalar(loss) if loss is not None else None
        kind = event.kind
        if kind == "backward":
            self._before_backward(event)
            return
        if kind in ("tape_enter", "tape_reset"):
            self._before_tape(event)
        tape = event.tape
        on_tape = tape is not None and tape is self.recording.tape
        self._meets = on_tape and kind not in FILLS
        self._touched = [] if kind in SILENT or self._is_new(event) else self._accesses(event)
        if tape is not None and on_tape:
            self._before_count = event.replay.entries.start if event.replay is not None else len(tape.launches)
            if self._touched and self.recording.overflow is None:
                self._guarded(self._sync_before, kind in LAUNCHES)

    def _is_new(self, event: Event) -> bool:
        """Whether an array is filled that the tape has not met: a run without places has nothing to keep of that."""
        if self.detailed or event.kind not in FILLS:
            return False
        return not is_array(event.subject) or self.number(root(event.subject)) < 0

    def _before_tape(self, event: Event) -> None:
        new = event.subject is not self.recording.tape or event.replay is not None
        if new == (event.kind == "tape_enter"):
            self._begin(event.subject, event.replay)
        elif event.kind == "tape_enter":
            self.recording.reentered = True

    def _before_backward(self, event: Event) -> None:
        if self.call == self.target:
            self.at_target(self, event)
        elif event.subject is self.recording.tape:
            self.recording.swept, self.recording.reentered = len(event.subject.launches), False

    def after(self, event: Event) -> None:
        if event.kind == "backward":
            self.call += 1
            return
        tape = self.recording.tape
        if tape is None or event.kind == "create":
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
        elif self.detailed and event.kind in LOOKS and is_array(event.subject):
            place, count = names.place(self.origins.frame(3)), len(tape.launches)
            if event.kind == "numpy":
                taken = Write(event.index, "a NumPy view", place, extent(event.subject), count)
                self.recording.views.append(taken)
            if event.tape is tape:
                self.recording.reads.append(self._read(event, place, count))
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

    def _begin(self, tape: Any, replay: Any = None) -> None:
        """A tape is entered for the first time: what was recorded of another one is not needed."""
        if self.shadows is not None:
            self.shadows.clear()
        self.roots.clear()
        self._numbers.clear()
        self._inside.clear()
        self.blank.clear()
        missed = replay.entries.start if replay is not None else len(tape.launches)
        self.recording = Recording(tape=tape, missed=missed, made_before=self.registry.count)
        self._before_count = self.recording.missed

    def enter_open_tape(self) -> None:
        """The program stands inside a tape's `with` block already: what is on it was recorded before."""
        runtime = self.wp._src.context.runtime
        if runtime is not None and runtime.tape is not None:
            self._begin(runtime.tape)
            self.recording.reentered = False

    def number(self, base: Any) -> int:
        """The root's number: the order in which the tape meets its roots is the same in all runs. -1: not met yet.

        Numbers by creation are not: a solver that iterates until it converges makes more arrays or fewer.
        """
        return self._numbers.get(_identity(base), -1)

    def _guarded(self, sync: Callable[..., Any], *args: Any) -> None:
        """What does not fit is not recorded; the operations still are, so that they can be cut into stretches."""
        if self.shadows is None:
            return
        try:
            sync(*args)
        except ArenaFull as error:
            self.recording.overflow = str(error)
            self.recording.held = self.shadows.arena.held
            self.recording.held_ops = len(self.recording.operations)
            self.shadows.clear()

    def _sync_before(self, launched: bool) -> None:
        """The contents that the next operation meets. launched: else new memory may not have its content yet."""
        op, cuts = self._before_count, self.cuts
        if cuts is None:
            for access in self._touched:
                if launched or access.number in self.roots:
                    self._sync(access, op, BEFORE)
            return
        begins = cuts.begins(op)
        for access in self._touched:
            new = access.number not in self.roots
            if self.detailed and access.number >= 0 and access.part not in self.blank:
                self._note_blank(access)
            if begins:
                if launched or not new:
                    self._sync(access, op, BEFORE)
            elif launched and new and cuts.outlives(access.part, cuts.stretch(op)):
                self._sync(access, op, BEFORE)

    def _note_blank(self, access: Access) -> None:
        base, size = access.base, access.high - access.low
        self.blank[access.part] = base.device.is_cpu and size > 0 and is_zero(base.ptr + access.low, size)

    def _sync_written(self, operation: Operation) -> None:
        cuts, op = self.cuts, operation.index
        single = cuts is None or self.is_single(op)
        for access in operation.accesses:  # what nobody has seen yet: the source of a copy, the parameter in a stretch
            unseen = access.number not in self.roots and access.read and not access.written
            if unseen and (single or self._is_parameter(access.base)):
                self._sync(access, op, BEFORE)
        if cuts is None or single:
            for access in operation.accesses:
                if access.written:
                    self._sync(access, op, WRITTEN)
            return
        self._inside.update((access.part, access) for access in operation.accesses)
        if cuts.ends(op):
            stretch = cuts.stretch(op)
            for part, access in self._inside.items():
                if cuts.outlives(part, stretch):
                    self._sync(access, stretch.start, WRITTEN)
            self._inside.clear()

    def _is_parameter(self, base: Any) -> bool:
        """Whether the root holds the parameter, which carries a tangent though no operation writes it."""
        array = self.registry.find(self.parameter)
        return array is not None and root(array) is base

    def _sync(self, access: Access, op: int, phase: int) -> None:
        number, base, low, high = access.number, access.base, access.low, access.high
        if low < high and self.shadows is not None and (number in self.roots or base.device.is_cpu):
            self.roots[number] = base
            self.shadows.sync(number, base, op, phase, low, high)

    def access(self, label: str, array: Any, usage: tuple[bool, bool, bool, bool]) -> Access:
        """The array with what it is a part of. usage: see `access.Access`."""
        if array._ref is None and array.is_contiguous:  # most arrays are: be quick
            base, low, high = array, 0, array.capacity
        else:
            base, (low, high) = root(array), span(array)
            high = min(high - base.ptr, base.capacity)
            low = min(max(low - base.ptr, 0), high)
        identity = _identity(base)
        number = self._numbers.get(identity, -1)
        if number < 0 and self._meets:
            number = self._numbers[identity] = len(self._numbers)
        return Access(label, array, usage, base, number, low, high)

    def _accesses(self, event: Event) -> list[Access]:
        kind = event.kind
        if kind in LAUNCHES:
            return self._launch_accesses(event.subject, *event.launch_arguments)
        if kind == "record_func":
            arrays = [a for value in event.argument(2, "arrays") or () for _, a in arrays_in(value)]
            return [self.access(f"arrays[{k}]", array, UNDERIVED) for k, array in enumerate(arrays)]
        if kind in ("copy", "assign"):
            source = event.argument(1, "src")
            found = [self.access("dest", event.subject, WRITE)] if is_array(event.subject) else []
            return found + ([self.access("src", source, READ)] if is_array(source) else [])
        if kind in FILLS and is_array(event.subject):
            return [self.access(kind, event.subject, WRITE)]
        if kind == "native":
            given = [argument for argument in event.native_arguments if is_array(argument[1])]
            return [self.access(name, array, WRITE if written else READ) for name, array, written in given]
        return []

    def _launch_accesses(self, kernel: Any, inputs: Any, outputs: Any) -> list[Access]:
        return [
            self.access(label, array, UNDERIVED if how is None else how.usage)
            for label, array, how in self._arguments.labelled(kernel, inputs, outputs)
        ]

    def _add(self, event: Event, entries: list[Any]) -> None:
        place = None
        if self.detailed:
            place = self._place(event)
            self.recording.lines.update(self.origins.own_lines(self.origins.frame(3)))
        for offset, entry in enumerate(entries):
            index = self._before_count + offset
            if callable(entry):
                copied = recorded_arrays(entry, ())
                told = [("src" if r else "dest", a, (r, w, False, False)) for a, r, w in copied]
                accesses = [self.access(*each) for each in told] or self._touched
                operation = Operation(index, "array copy" if copied else "recorded function", place, accesses)
            else:
                kernel = entry[0]
                launched = kernel is event.subject and len(entries) == 1
                accesses = self._touched if launched else self._launch_accesses(kernel, entry[3] or (), entry[4] or ())
                operation = Operation(index, kernel.key, place, accesses)
                if self.detailed:
                    operation.definition, operation.disabled = _definition(kernel), is_disabled(kernel)
            self.recording.operations.append(operation)
            if self.recording.overflow is None:
                self._guarded(self._sync_written, operation)

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
                self.recording.writes.append(
                    Write(
                        event.index,
                        what,
                        place,
                        (access.base.ptr + access.low, access.base.ptr + access.high),
                        count,
                        callers,
                        event.tape is not None,
                    )
                )

    def _read(self, event: Event, place: dict[str, Any] | None, count: int) -> Read:
        """The host looks at an array: what comes of it is on no tape."""
        array, base = event.subject, root(event.subject)
        number = self.number(base)
        written = (o for o in self.recording.operations if any(a.written and a.number == number for a in o.accesses))
        followed = self._is_parameter(base) or (number >= 0 and next(written, None) is not None)
        registry = self.registry
        how = "numpy" if event.kind == "numpy" else event.function.__name__
        return Read(event.index, how, place, count, registry.serial(array), registry.count, followed)

    def program_ended(self, message: str | None, reason: str | None = None) -> None:
        """The user's program ended before its backward call was reached."""
        self.answer(message or "the program ended before its backward call was reached")

    def finish(self) -> None:
        """Catch what changed after the last operation, before backward."""
        if self.recording.overflow is None:
            self._guarded(self._sync_rest)

    def _sync_rest(self) -> None:
        assert self.shadows is not None
        for number, base in self.roots.items():
            self.shadows.sync_seen(number, base, self.end, BEFORE)

    @property
    def end(self) -> int:
        """The position behind the last operation."""
        return len(self.recording.tape.launches) if self.recording.tape is not None else 0

    @property
    def bytes(self) -> int:
        """Of the arrays that the tape has met."""
        bases = {a.number: a.base for o in self.recording.operations for a in o.accesses}
        return sum(base.capacity for base in bases.values())

    def is_single(self, op: int) -> bool:
        """Whether the operation is recorded singly."""
        return self.cuts is None or len(self.cuts.stretch(op)) == 1

    @property
    def stretches(self) -> list[range]:
        """The recorded tape in order, in the pieces that it was recorded in."""
        found: list[range] = []
        for operation in self.recording.operations:
            if not found or operation.index >= found[-1].stop:
                op = operation.index
                found.append(self.cuts.stretch(op) if self.cuts is not None else range(op, op + 1))
        return found

    def shape(self, lasting: set[int]) -> Shape:
        """What another run needs to know of the tape to cut it. lasting: roots with a gradient from the start."""
        operations = self.recording.operations
        sizes = [sum(a.high - a.low for a in o.accesses if a.written) for o in operations]
        foreseen = sum(sizes[: self.recording.held_ops])
        more = max(1.0, self.recording.held / foreseen) if foreseen else 1.0  # first contents count as well
        sizes = [round(more * size) for size in sizes]
        return Shape(self.recording.missed, [o.parts for o in operations], sizes, lasting)

    def objective(self, event: Event) -> float:
        """The loss that this backward call is handed; nan where it is seeded by arrays."""
        if self.early_value is not None:
            return self.early_value
        loss = event.argument(1, "loss")
        return first_scalar(loss) if is_array(loss) else float("nan")


def _identity(base: Any) -> int:
    serial = base.__dict__.get(SERIAL, -1)
    return serial if serial >= 0 else -int(base.ptr)


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

"""The run that only watches: events -> tapes, parameters, objectives, iterations.

`Watch` is a listener of `hooks`. It changes nothing and keeps little: numbers, names and places. What it
learned is turned into `trace.json` by `summary.py`.
"""

from __future__ import annotations

import math
import weakref
from dataclasses import dataclass, replace
from typing import Any, Callable

import numpy as np

from . import names, quarantine
from .arrays import checksum, describe_dtype, first_scalar, is_array, is_differentiable, overlap, quiet, scalars
from .boundaries import Boundaries, Joint
from .consumption import Entry
from .events import Event
from .followed import MOST_SCALARS
from .host_values import host_scalars
from .leads import Lead, Leads
from .leaves import Leaf, Leaves
from .registry import LaunchArguments, Registry, root
from .reported import Sum, is_scalar, sum_kind
from .seeds import ReadGradients, SeedMemory, origin, seeded_outputs
from .tapes import Tapes, TapeState, recorded_arrays

NAMED_BACKWARDS = 4  # variables are looked up by name around the first backward calls; later ones reuse the names
LAUNCHES = frozenset({"launch", "command"})
NAMED_PARTS = 64  # lines that read a part of a gradient buffer, of which the view they use is looked up
CHECKSUM_LIMIT = 64 << 20  # bytes; a larger parameter is not compared between iterations by content


@dataclass
class Backward:
    """One call of Tape.backward by the user's program."""

    call: int
    event: int
    place: dict[str, Any] | None
    kind: str  # 'loss' or 'seeded'
    loss: float | None
    loss_name: str | None
    loss_dtype: str | None
    outputs: list[int]  # serials of the arrays that carry a seed; of a mixed call, a seed of its own
    ops: int
    tape_event: int
    tape_place: dict[str, Any] | None
    launches_before: int
    kernels: dict[str, int]
    keys: list[str]
    loss_serial: int
    loss_use: int  # where the tape first touches the loss, or -1
    loss_event: int  # where the loss is still what the tape left (it was reset before backward), or -1
    seeds_consumed: bool
    carried: bool  # seeded with the gradient that an earlier backward pass left: a link of a chain of tapes
    joints: list[Joint]  # where its tape ends in what that of the call before began with
    mixed: bool  # and with terms of the objective, too: a running cost
    emptied: dict[str, Any] | None  # where the tape was reset while it recorded
    lead: Lead  # what ran outside any tape since the backward call before
    edits: dict[str, dict[str, Any]]  # by leaf: where the gradient that it adds to was changed since the call before
    scalars: dict[str, float]  # numbers on the host at a call that is seeded by hand
    sums: list[Sum]  # scalars of the tape that the loss is only a summand of
    repeats: bool  # the call before, on the same recording and from the same seed: it adds the same gradient once more

    @property
    def linked(self) -> bool:
        """Whether it continues the call before: by its seed, or because its tape ends where that one's began."""
        return self.carried or bool(self.joints)


@dataclass
class EarlyRead:
    """A read of a gradient buffer before any tape was known to read its owner. view: what the host got, if it can."""

    event: int
    how: str
    gradient: Any
    owner: weakref.ref
    place: dict[str, Any] | None
    view: weakref.ref | None = None


class Watch:
    """Listener that sees everything and decides nothing."""

    def __init__(
        self,
        wp: Any,
        origins: names.Origins,
        registry: Registry,
        arguments: LaunchArguments,
    ):
        self.wp = wp
        self.origins = origins
        self.registry = registry
        self.tapes = Tapes(arguments)
        self.leaves = Leaves(origins, registry, self.tapes)
        self.backwards: list[Backward] = []
        self._swept: tuple[weakref.ref[TapeState], list[int]] | None = None  # recording, seeded arrays of the last one
        self.early_reads: list[EarlyRead] = []
        self.launches = 0
        self.races: dict[str, dict[str, Any] | None] = {}  # by kernel: where one is launched that reads what it writes
        self.unfollowed: list[str] = []  # why graphs that the program launches were not followed
        self.other_processes = 0
        self.parameter_expression: str | None = None
        self.parameter_error: str | None = None
        self.named: dict[int, str] = {}  # serial -> name that the user gave with --parameter
        self._views: list[tuple[Leaf, Entry, weakref.ref]] = []
        self.seeds = SeedMemory()
        self.read_gradients = ReadGradients()
        self.boundaries = Boundaries(registry)
        self.leads = Leads(origins)
        self._part_sites: set[Any] = set()
        self.sum_kinds: set[Any] = set()  # of all backward calls: the lines of their sums, and what the loss is in them
        self.sum_names: dict[int, str] = {}  # by number
        self.scalars_read: dict[int, dict[str, Any] | None] = {}  # scalars by number: where the host reads them first
        self.scalars_used: set[int] = set()  # those that a copy or a launch outside any tape reads
        self.captures: list[tuple[int, int]] = []  # of `Graphs.spans`
        self._launched: list[tuple[Any, bool, bool]] = []  # the arrays of the launch that is being made

    # -- hook interface ------------------------------------------------------------------------

    def created(self, array: Any) -> None:
        self.leaves.created_at[self.registry.created(array)] = self._event_index

    def recorded_function(self, tape: Any, function: Callable[..., Any], arrays: Any) -> None:
        self.tapes.record(tape, self._event_index, "recorded function", recorded_arrays(function, arrays))

    _event_index = 0

    def before(self, event: Event) -> None:
        self._event_index = event.index
        kind = event.kind
        if event.tape is None and kind != "backward":
            self.leads.note(event.index)
        if kind in LAUNCHES:
            self._before_launch(event)
        elif kind in ("numpy", "bridge"):
            self.tapes.shown(event.subject)
            self._note_scalar(event.subject)
            self._maybe_read(event, event.subject, kind)
        elif kind in ("copy", "assign"):
            self.tapes.touched(event.index, event.argument(1, "src"))
            self._use_scalar(event.argument(1, "src"))
            self._maybe_read(event, event.argument(1, "src"), kind)
        elif kind == "backward":
            self._before_backward(event)

    def after(self, event: Event) -> None:
        kind = event.kind
        if kind in LAUNCHES:
            self._after_launch(event)
        elif kind == "create":
            if event.kwargs.get("ptr") is None:  # a view writes nothing
                self.tapes.wrote(event.index, event.subject)
        elif kind in ("zero_", "fill_", "assign", "copy"):
            self._after_write(event)
            if event.replay is not None:
                self._record_replayed(event)
        elif kind == "record_func":
            if event.replay is not None:
                self._record_replayed(event)
        elif kind == "native":
            for _, array, written in event.native_arguments:
                if written:
                    self.tapes.wrote(event.index, array)
        elif kind == "numpy":
            self._hold_view(event)
        elif kind == "tape_enter":
            if event.replay is not None:
                self.tapes.forget(event.subject)  # each launch of a captured graph runs the whole recording
            state = self.tapes.of(event.subject)
            if state.ops == 0:
                state.enter_event = event.index
                state.enter_place = names.place(self.origins.frame(2))
            state.entered()
        elif kind == "tape_exit":
            state = self.tapes.of(event.subject)
            state.exit_event, state.recording = event.index, False
        elif kind == "backward":
            self._after_backward(event)
            self.seeds.taken(event.argument(2, "grads"), self.registry)
        elif kind in ("tape_zero", "tape_reset"):
            self._after_zero(event)
            if kind == "tape_reset":
                self.tapes.empty(event.subject, names.place(self.origins.frame(2)))
        elif kind.startswith("capture"):
            self.unfollowed = list(dict.fromkeys([*self.unfollowed, str(event.subject)]))

    # -- launches ------------------------------------------------------------------------------

    def _before_launch(self, event: Event) -> None:
        try:
            self._launched = self.tapes.arguments.of(event.subject, *event.launch_arguments)
        except (AttributeError, TypeError):  # no kernel, no list of inputs: Warp refuses it next, in its own words
            self._launched = []
        if event.tape is not None and len({array.ptr for array, _, _ in self._launched}) < len(self._launched):
            self._note_race(event)
        for array, _, _ in self._launched:
            if self.registry.might_be_gradient(array):
                self._maybe_read(event, array, f"launch of {getattr(event.subject, 'key', 'a kernel')}")

    def _note_race(self, event: Event) -> None:
        """One array as two arguments: its threads may read what others of them write, and their order then counts."""
        kernel = event.subject
        if kernel.key in self.races:
            return
        given = list(self.tapes.arguments.labelled(kernel, *event.launch_arguments))
        read = {a.ptr for _, a, how in given if how is not None and how.loaded and not how.elementwise}
        if any(a.ptr in read and how is not None and how.stored for _, a, how in given):
            self.races[kernel.key] = names.place(self.origins.frame(3))

    def _after_launch(self, event: Event) -> None:
        self.launches += 1
        arrays = self._launched
        on_tape = event.kind == "launch" and event.kwargs.get("record_tape", True) and not event.kwargs.get("adjoint")
        tape = event.tape if on_tape else None
        if tape is not None and any(written and array.size == 1 and is_scalar(array) for array, _, written in arrays):
            state, labelled = self.tapes.of(tape), self.tapes.arguments.labelled(event.subject, *event.launch_arguments)
            place = names.place(self.origins.frame(3))
            state.scalars.note(event.index, event.subject, labelled, self.registry, place)
        self.tapes.launch(event.index, event.subject, arrays, tape)
        if event.tape is not None and tape is None:
            self.tapes.pass_by(event.tape, event.index, arrays)
        if tape is None:
            for array, read, written in arrays:
                if read and not written and array.size == 1:
                    self._use_scalar(array)
                if written:
                    self._note_zeroed(event, array)

    def _note_scalar(self, array: Any) -> None:
        """The host reads an array: of a single value, where it does so first."""
        if not is_array(array) or array.size != 1:
            return
        serial, frame = self.registry.serial(root(array)), self.origins.frame(4)
        if serial not in self.scalars_read:
            self.scalars_read[serial] = names.place(frame)
        sums = self.backwards[-1].sums if self.backwards else []
        if (
            len(self.sum_names) < NAMED_BACKWARDS
            and serial not in self.sum_names
            and serial in {s.serial for s in sums}
        ):
            self.sum_names[serial] = self.leaves.name(array, self.leaves.find_names([array], frame).get(id(array), []))

    def _use_scalar(self, array: Any) -> None:
        """Something else than the host reads it outside of the tape's operations: a log on the device, say."""
        if is_array(array) and array.size == 1:
            self.scalars_used.add(self.registry.serial(root(array)))

    def _record_replayed(self, event: Event) -> None:
        """A call of a captured graph records nothing anew: take its operations from the tape."""
        tape = event.tape
        for index in event.replay.entries if tape is not None else ():
            entry = tape.launches[index] if tape is not None and index < len(tape.launches) else None
            if callable(entry):
                arrays = event.argument(2, "arrays") if event.kind == "record_func" else ()
                self.tapes.record(tape, event.index, "recorded function", recorded_arrays(entry, arrays))

    def _after_write(self, event: Event) -> None:
        self.tapes.wrote(event.index, event.subject)
        if is_array(event.subject):
            self.tapes.last_reset[root(event.subject).ptr] = event.index
        self._note_zeroed(event, event.subject)

    # -- gradients -----------------------------------------------------------------------------

    def _maybe_read(self, event: Event, array: Any, how: str) -> None:
        if not is_array(array):
            return
        owner = self.registry.owner_of_gradient(array)
        left = self.leaves.left_with(array)
        if left is not None and not self.leaves.matching(array):
            self._log_left_behind(left, event, array, how)
            return
        if owner is None:
            return
        if array is owner._grad and self.backwards:
            self.read_gradients.note(owner, self.registry)
        if array is not owner._grad and array.size < owner.size and len(self._part_sites) < NAMED_PARTS:
            owner = self._owner_of_part(array) or owner
        matches = self.leaves.matching(array)
        if matches and self.backwards and not any(leaf.array() is owner or leaf.read_itself for leaf in matches):
            matches = [self._adopt_view(owner, matches)]
        for leaf in matches:
            leaf.read_itself = leaf.read_itself or leaf.array() is owner
        if not matches and self.backwards and is_differentiable(owner) and not self._is_intermediate(owner):
            matches = [self._adopt_orphan(owner)]
        place = names.place(self.origins.frame(3))
        if not matches:
            self.early_reads.append(EarlyRead(event.index, how, array, weakref.ref(owner), place))
            return
        for leaf in matches:
            self._log_read(leaf, event, how, place)

    def _owner_of_part(self, gradient: Any) -> Any | None:
        """The view whose `.grad` is a part of another array's gradient (`patch.grad`, where patch = image[2:4])."""
        frame = self.origins.frame(4)
        site = (frame.f_code, frame.f_lineno) if frame is not None else None
        if site is None or site in self._part_sites:
            return None
        self._part_sites.add(site)
        for _, array in names.reachable(self.origins.frames(frame)):
            if array._grad is gradient:
                self.registry.own_gradient(array)
                return array
        return None

    def _log_read(self, leaf: Leaf, event: Event, how: str, place: dict[str, Any] | None) -> None:
        owner = leaf.array()
        now = scalars(owner._grad) if owner is not None and owner._grad is not None else None
        same = (
            None if leaf.gradient is None or now is None else bool(np.array_equal(now, leaf.gradient, equal_nan=True))
        )
        norm = float(np.linalg.norm(now.astype(float))) if now is not None else math.nan
        entry = Entry("read", event.index, gradient=self.keep(now), norm=norm, same=same, place=place, how=how)
        leaf.history.append(entry)
        leaf.follower.read(now)
        heir = self._heir(leaf)
        if heir is not None:
            heir.history.append(replace(entry, same=False, left_behind=True))

    def _log_left_behind(self, leaf: Leaf, event: Event, gradient: Any, how: str) -> None:
        """A read of the gradient of an array that the leaf's variable held before. The same values are no other gradient."""
        now = scalars(root(gradient))
        same = leaf.gradient is not None and bool(np.array_equal(now, leaf.gradient, equal_nan=True))
        norm = float(np.linalg.norm(now.astype(float)))
        place = names.place(self.origins.frame(4))
        entry = Entry("read", event.index, gradient=self.keep(now), norm=norm, same=same, place=place, how=how)
        leaf.history.append(replace(entry, left_behind=not same))

    def _heir(self, leaf: Leaf) -> Leaf | None:
        """The array that the leaf's variable held in the last backward call, made since the leaf was last on a tape."""
        latest = self.backwards[-1] if self.backwards else None
        if latest is None or leaf.key in latest.keys or not leaf.uses:
            return None
        left, names_of = self.backwards[leaf.uses[-1]["call"]].event, {leaf.name, *leaf.aliases}
        heirs = [
            other
            for other in (self.leaves[key] for key in latest.keys)
            if (other.shape, other.dtype) == (leaf.shape, leaf.dtype)
            and names_of & {other.name, *other.aliases}
            and self.leaves.created_at.get(other.serial, -1) > left
        ]
        return heirs[0] if len(heirs) == 1 else None

    def keep(self, values: np.ndarray | None) -> np.ndarray | None:
        """A run that only watches keeps norms, not values; the measuring run overrides this."""
        return None

    def _is_intermediate(self, owner: Any) -> bool:
        return (
            self.registry.serial(owner) in self.tapes.intermediates
            or self.registry.serial(root(owner)) in self.tapes.intermediates
        )

    def _hold_view(self, event: Event) -> None:
        """On CPU `.numpy()` is a live view: remember it, to know later whether somebody still holds it."""
        view = event.result
        if not isinstance(view, np.ndarray):
            return
        try:
            reference = weakref.ref(view)
        except TypeError:
            return
        if self.early_reads and self.early_reads[-1].event == event.index:
            self.early_reads[-1].view = reference
        for leaf in self.leaves.values():
            if leaf.history and leaf.history[-1].event == event.index and leaf.history[-1].kind == "read":
                self._views.append((leaf, leaf.history[-1], reference))

    def _mark_held(self) -> None:
        alive = []
        for leaf, entry, reference in self._views:
            entry.held = reference() is not None
            if entry.held:
                alive.append((leaf, entry, reference))
        self._views = alive

    def _note_zeroed(self, event: Event, array: Any) -> None:
        if not is_array(array) or not self.registry.might_be_gradient(array):
            return
        if self.registry.owner_of_gradient(array) is None:
            return
        for leaf in self.leaves.matching(array):
            self._zero_entry(leaf, event)

    def _after_zero(self, event: Event) -> None:
        for leaf in self.leaves.values():
            if leaf.history and leaf.history[-1].kind != "zero":
                self._zero_entry(leaf, event)

    def _zero_entry(self, leaf: Leaf, event: Event) -> None:
        owner = leaf.array()
        if owner is not None and owner._grad is not None and not np.any(scalars(owner._grad)):
            self._mark_held()
            leaf.history.append(Entry("zero", event.index, held=any(viewed is leaf for viewed, _, _ in self._views)))
            leaf.follower.zeroed()
            leaf.emptied, leaf.gradient = leaf.gradient, None
            leaf.edited = None
        elif owner is not None and owner._grad is not None:
            leaf.edited = {**(names.place(self.origins.frame(4)) or {}), "how": described(event)}
            if leaf.emptied is not None:
                self._undo_zero(leaf, scalars(owner._grad))

    @staticmethod
    def _edit(leaf: Leaf) -> dict[str, Any] | None:
        """Where the gradient, which the backward pass that begins adds to, was changed since the last one left it.

        A write through a NumPy view is seen by no hook: then it is where the view was taken.
        """
        array = leaf.array()
        if leaf.gradient is None or array is None or array._grad is None:
            return None
        now = scalars(array._grad)
        if not np.any(now) or np.array_equal(now, leaf.gradient, equal_nan=True):
            return None
        last = next((e for e in reversed(leaf.history) if e.kind == "read"), None)
        seen = {**(last.place or {}), "how": last.how} if last is not None else {}
        return {**(leaf.edited or seen), "scale": _scale(now, leaf.gradient)}

    @staticmethod
    def _undo_zero(leaf: Leaf, now: np.ndarray) -> None:
        """Where the program put back what it had saved before it zeroed everything, the buffer goes on adding up."""
        if leaf.emptied is None or not np.array_equal(now, leaf.emptied) or leaf.history[-1].kind != "zero":
            return
        leaf.history.pop()
        leaf.follower.put_back()
        leaf.gradient, leaf.emptied = leaf.emptied, None

    # -- backward ------------------------------------------------------------------------------

    def _before_backward(self, event: Event) -> None:
        tape = event.subject
        loss = event.argument(1, "loss")
        grads = event.argument(2, "grads")
        state = self.tapes.of(tape)
        frame = self.origins.frame(3)
        call = len(self.backwards)
        found: dict[int, list[str]] = {}
        leaves = [a for a in state.leaves.values() if is_differentiable(a)]
        if call < NAMED_BACKWARDS:
            self.other_processes = max(self.other_processes, quarantine.other_processes())
            found = self.leaves.find_names([*leaves, *([loss] if is_array(loss) else [])], frame)
        if self.parameter_expression is not None and call < NAMED_BACKWARDS:
            leaves = self._named_parameter(frame, leaves)
        seeds = seeded_outputs(loss, grads, state)
        again = self.seeds.again(seeds, grads, self.registry)
        came = origin(grads, seeds, self.leaves.values(), self.read_gradients, again)
        for leaf in came.carriers:  # before rebuilt leaves forget
            leaf.carrier = True
        joints = self.boundaries.joints(state, grads)
        for joint in joints:
            joint.leaf.resumed += 1
        linked = came.linked or (is_array(loss) and any(joint.how == "seed" for joint in joints))
        loss_base = root(loss).ptr if is_array(loss) else -1
        mixed = linked and (loss_base in state.first_use or bool(came.stated))
        stated = came.stated if mixed else seeds
        keys = [self.leaves.use(array, state, found.get(id(array), []), call) for array in leaves]
        for leaf in [leaf for leaf in self.leaves.values() if leaf.orphan and leaf.key not in keys]:
            array = leaf.array()
            if array is not None:
                keys.append(self.leaves.use(array, state, [], call))
        self.seeds.handed(grads, self.registry)
        sums = state.scalars.sums(self.registry.serial(loss)) if is_array(loss) and is_scalar(root(loss)) else []
        self.sum_kinds.add(tuple(sum_kind(s) for s in sums))
        self.backwards.append(
            Backward(
                call=call,
                event=event.index,
                place=event.replay.place if event.replay is not None else names.place(frame),
                kind="loss" if is_array(loss) else "seeded",
                loss=first_scalar(loss) if is_array(loss) else None,
                loss_name=self.leaves.name(loss, found.get(id(loss), []))
                if is_array(loss)
                else ", ".join(self.leaves.name(a, []) for a in stated) or None,
                loss_dtype=describe_dtype(loss) if is_array(loss) else (describe_dtype(stated[0]) if stated else None),
                outputs=[self.registry.serial(a) for a in stated],
                ops=state.ops,
                tape_event=state.enter_event,
                tape_place=state.enter_place,
                launches_before=self.launches,
                kernels=dict(state.kernels),
                keys=keys,
                loss_serial=self.registry.serial(loss) if is_array(loss) else -1,
                loss_use=state.first_use.get(loss_base, (-1, -1))[0],
                loss_event=state.exit_event + 1
                if 0 <= state.exit_event < self.tapes.last_reset.get(loss_base, -1)
                else -1,
                seeds_consumed=self.seeds.consumed(grads, self.registry),
                carried=linked,
                joints=joints,
                mixed=mixed,
                emptied=state.emptied,
                lead=self.leads.take(),
                edits={key: edit for key in keys if (edit := self._edit(self.leaves[key])) is not None},
                scalars=host_scalars(frame) if not is_array(loss) and not came.linked else {},
                sums=sums,
                repeats=self._is_repeated(state, loss, seeds, again),
            )
        )
        self._swept = (weakref.ref(state), [self.registry.serial(a) for a in seeds])
        self._mark_held()
        self._content_changes(event, keys)
        self._attach_early_reads(keys)

    def _is_repeated(self, state: TapeState, loss: Any, seeds: list[Any], again: set[int]) -> bool:
        """Whether the call that begins runs the last one's recording backward once more, from the same seed."""
        if self._swept is None or self._swept[0]() is not state:
            return False
        last, serials = self.backwards[-1], [self.registry.serial(a) for a in seeds]
        same_loss = (self.registry.serial(loss) if is_array(loss) else -1) == last.loss_serial
        same_seeds = serials == self._swept[1] and again.issuperset(serials)
        return same_loss and same_seeds and state.ops == last.ops and not self.tapes.written_since(last.event, state)

    def _adopt_orphan(self, owner: Any) -> Leaf:
        """An array whose gradient is read although no tape reads it: its gradient stays zero."""
        call = self.backwards[-1]
        found = self.leaves.find_names([owner], self.origins.frame(4))
        leaf = self.leaves[self.leaves.use(owner, None, found.get(id(owner), []), call.call)]
        leaf.orphan = True
        leaf.gradient = scalars(owner._grad)
        leaf.uses[-1]["event"] = call.event
        norm = float(np.linalg.norm(leaf.gradient.astype(float)))
        leaf.history.append(Entry("write", leaf.uses[-1]["last_write"]))
        leaf.history.append(Entry("backward", call.event, call.call, self.keep(leaf.gradient), norm))
        call.keys.append(leaf.key)
        return leaf

    def _adopt_view(self, owner: Any, matches: list[Leaf]) -> Leaf:
        """The gradient is read through another array (the base, or a view) than the tape reads: that one counts."""
        call, twin, serial = self.backwards[-1], matches[0], self.registry.serial(owner)
        found = self.leaves.find_names([owner], self.origins.frame(4))
        leaf = self.leaves.make(owner, serial, found.get(id(owner), []))
        leaf.orphan = True
        leaf.gradient, leaf.content = scalars(owner._grad), None
        leaf.uses = [{**use, "serial": serial} for use in twin.uses]
        leaf.history = [replace(entry, gradient=None) for entry in twin.history if entry.kind != "read"]
        for entry in [e for e in leaf.history if e.kind == "backward"][-1:]:
            entry.gradient, entry.norm = self.keep(leaf.gradient), float(np.linalg.norm(leaf.gradient.astype(float)))
        for each in matches:
            each.stands_for = leaf.key
        call.keys.append(leaf.key)
        return leaf

    def _named_parameter(self, frame: Any, leaves: list[Any]) -> list[Any]:
        """Evaluate --parameter in the frames around backward; the array joins the leaves."""
        problem = f"no variable {self.parameter_expression!r} where backward is called"
        for user_frame in self.origins.frames(frame):
            try:
                with quiet():
                    value = eval(self.parameter_expression or "", user_frame.f_globals, dict(user_frame.f_locals))
            except Exception as error:
                problem = f"{self.parameter_expression!r}: {type(error).__name__}: {error}"
                continue
            if is_array(value):
                self.named[self.registry.serial(value)] = self.parameter_expression or ""
                self.parameter_error = None
                return leaves if any(a is value for a in leaves) else [*leaves, value]
            problem = f"{self.parameter_expression!r} is a {type(value).__name__}, not a wp.array"
        if not self.named:
            self.parameter_error = problem
        return leaves

    def _content_changes(self, event: Event, keys: list[str]) -> None:
        """An update that no hook saw (through a NumPy view, another framework) shows in the bytes."""
        for key in keys:
            leaf = self.leaves[key]
            array = leaf.array()
            content = checksum(array) if array is not None and array.capacity <= CHECKSUM_LIMIT else None
            use = leaf.uses[-1]
            earlier = leaf.uses[-2] if len(leaf.uses) > 1 else None
            changed = leaf.content is not None and content is not None and content != leaf.content
            if earlier is None or use["serial"] != earlier["serial"] or use["last_write"] > earlier["event"] or changed:
                unchanged = earlier is not None and content is not None and content == leaf.content
                self._write_entry(leaf, use, earlier["event"] if earlier else -1, unchanged)
            use["event"] = event.index
            leaf.content = content

    @staticmethod
    def _write_entry(leaf: Leaf, use: dict[str, Any], previous_backward: int, unchanged: bool) -> None:
        """Put the write where it happened; one that no hook saw came after the gradient was last read."""
        history, write = leaf.history, use["last_write"]
        if write <= previous_backward and history:
            write = max((e.event for e in history if e.kind in ("backward", "read", "write")), default=write)
            if use["first_use"] >= 0:
                write = min(write, use["first_use"] - 1)
        at = len(history)
        while at > 0 and history[at - 1].event > write and write > previous_backward:
            at -= 1
        history.insert(at, Entry("write", write, unchanged=unchanged))

    def _attach_early_reads(self, keys: list[str]) -> None:
        """Reads from before this backward that nobody could place then: stale reads of these leaves."""
        for early in self.early_reads:
            for key in keys:
                leaf = self.leaves[key]
                array = leaf.array()
                gradient = array._grad if array is not None else None
                if early.owner() is None or gradient is None or not overlap(gradient, early.gradient):
                    continue
                held = early.view is not None and early.view() is not None
                before = self.keep(scalars(gradient))
                entry = Entry(
                    "read", early.event, gradient=before, norm=0.0, place=early.place, how=early.how, held=held
                )
                leaf.history.append(entry)
                if held and early.view is not None:
                    self._views.append((leaf, entry, early.view))
        self.early_reads.clear()

    def _after_backward(self, event: Event) -> None:
        self.tapes.of(event.subject).swept = True
        call = self.backwards[-1]
        for key in call.keys:
            leaf = self.leaves[key]
            array = leaf.array()
            if array is None:
                continue
            gradient = scalars(array._grad) if array._grad is not None else None
            leaf.gradient, leaf.edited = gradient, None
            leaf.buffer = weakref.ref(root(array._grad)) if gradient is not None else None
            norm = float(np.linalg.norm(gradient.astype(float))) if gradient is not None else 0.0
            leaf.history.append(Entry("backward", event.index, call.call, self.keep(gradient), norm))
            if leaf.scalars <= MOST_SCALARS:
                leaf.follower.backward(scalars(array), gradient)
        self.boundaries.begun([self.leaves[key] for key in call.keys])


def described(event: Event) -> str:
    """What wrote, in words."""
    return f"launch of {getattr(event.subject, 'key', 'a kernel')}" if event.kind in LAUNCHES else event.kind


def _scale(now: np.ndarray, before: np.ndarray) -> float | None:
    """The factor that the values were multiplied by; None where it was something else."""
    one, other = now.astype(np.float64), before.astype(np.float64)
    factor = float(one @ other) / max(float(other @ other), 1e-300)
    return factor if np.allclose(one, factor * other, rtol=1e-4, atol=1e-6 * float(np.abs(one).max())) else None

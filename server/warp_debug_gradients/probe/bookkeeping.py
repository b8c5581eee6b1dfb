"""Step through one backward pass, operation by operation, and keep the adjoint ledger (see `ledger`).

Runs in a forked child of the unperturbed recording, at the moment when the program calls `backward`: the
user's own tape, arrays and gradient buffers are used as they stand. The tape is stepped by handing
`Tape.backward` one entry at a time, last first; the first call, with no entry, only seeds. A stretch that was
recorded at its end only is one step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Iterable

import numpy as np

from .arrays import float_parts, host, is_array, overwrite, scalars
from .clobbered import Clobbered, clobbered_reads, judge
from .cuts import Part, first_touched
from .events import Event
from .gradients import Contents, contents_of, copied, gradient_holders, release, run_adjoint
from .host_reads import made_of_host_values
from .ledger import Jump, Term
from .products import Products, total
from .recorded import Operation, parts_of
from .recording import Recorder
from .registry import root
from .shadows import BEFORE, WRITTEN, Shadows, view_of
from .writers import describe, file_line, made_off_tape, writers_between, written_on_tape

LISTED_ELEMENTS = 8
PLENTY = 256 << 20  # bytes of a tape's arrays up to which no memory is given back while the pass runs: it takes time


@dataclass
class Book:
    """What stepping through the pass found. Terms are per unit of the direction."""

    jumps: list[Jump] = field(default_factory=list)
    seed: Term = field(default_factory=Term)
    stale: list[tuple[Any, Term]] = field(default_factory=list)
    entering: list[tuple[Any, Term]] = field(default_factory=list)  # what is left at the tape's start, per root
    clobbered: list[Clobbered] = field(default_factory=list)
    nonfinite: dict[str, Any] | None = None


class Stepper:
    """One backward pass in steps. `restore`: None (as it is), 'all', or a set of root numbers whose reads are restored."""

    def __init__(
        self,
        recorder: Recorder,
        plus: Shadows,
        minus: Shadows,
        step: float,
        restore: Any,
        backward: Any,
        preset: set[int],
        kept: set[int],
    ):
        assert recorder.shadows is not None
        self.recorder = recorder
        self.now = Shadows.from_state(recorder.shadows.arena, recorder.shadows.state())
        self.runs = (self.now, plus, minus)
        self.step = step
        self.restore = restore
        self.backward = backward
        self.preset = preset  # roots whose gradient the program itself has filled, to seed a backward without loss
        self.kept = kept  # roots whose gradients are looked at after the pass
        self.book = Book()
        self.tape_end: Contents = {}  # what the tape left in the parts that changed after it
        self._look_for_buffers()

    def _look_for_buffers(self) -> None:
        """Seeding gives a buffer to an array that had none: `backward(grads={a: g})` makes g its gradient."""
        self._gradients = gradient_holders(self.recorder)
        self.products = Products(self.recorder, self._gradients, *self.runs, self.step)

    # -- the pass ------------------------------------------------------------------------------

    def run(self, event: Event) -> Book:
        tape, args, kwargs = event.subject, event.args[1:], event.kwargs
        entries = list(tape.launches)
        recording, stretches = self.recorder.recording, self.recorder.stretches
        sparing = not recording.missed and self.recorder.bytes > PLENTY
        dead = first_touched(stretches, recording.operations, 0) if sparing else {}
        try:
            changed = self.now.pending(len(entries), BEFORE)
            self._undo(len(entries), BEFORE)  # what happened after the tape is no state of the tape
            spans = ((n, low, high) for n, ranges in changed.items() for low, high in ranges)
            self.tape_end = copied(contents_of(self.now, spans))
            before = {n: t for n, t in self.products.whole().items() if not self._reseeded(n, event)}
            self.book.stale = [(n, t) for n, t in before.items() if t.plus or t.minus]
            tape.launches = []
            self.backward(tape, *args, **kwargs)  # seeds only
            self._look_for_buffers()
            self.book.seed = total(t - before.get(n, Term()) for n, t in self.products.whole().items())
            for stretch in reversed(stretches):
                first = recording.at(stretch.start)
                if len(stretch) == 1:
                    self._operation(first, entries[first.index], tape)
                else:
                    self._stretch(stretch, entries, tape)
                self._gap(first.index, first)
                self._let_go(dead.get(stretch.start, ()))
            if recording.missed:
                self._earlier_operations(entries[: recording.missed], tape)
            self.book.entering = list(self.products.whole().items())
        finally:
            tape.launches = entries
        return self.book

    def _undo(self, op: int, phase: int) -> None:
        for run in self.runs:
            run.undo(op, phase)

    def _earlier_operations(self, entries: list[Any], tape: Any) -> None:
        """The tape still holds operations from before: their adjoints run again, on what is there now."""
        before = total(self.products.whole().values())
        tape.launches = entries
        self.backward(tape)
        term = total(self.products.whole().values()) - before
        self.book.jumps.append(Jump(-1, "adjoint", term, "operations of an earlier recording", None))

    def _reseeded(self, number: int, event: Event) -> bool:
        """Whether this root's gradient is the seed, so that what it holds is not stale."""
        if number in self.preset:
            return True
        seeded = [event.argument(1, "loss"), *(event.argument(2, "grads") or {})]
        return any(self.recorder.number(root(a)) == number for a in seeded if is_array(a))

    def _operation(self, operation: Operation, entry: Any, tape: Any) -> None:
        parts = operation.parts
        after = self.products.of(parts)
        left = copied(contents_of(self.now, self._updated(operation)))
        made = self._made_by_copy(operation)
        self._undo(operation.index, WRITTEN)
        clobbered = clobbered_reads(self.recorder, self.now, operation)
        if clobbered:
            self._judge(operation, entry, tape, clobbered, left)
        wanted = [p for p in parts if self.restore == "all" or p[0] in self.restore] if self.restore else []
        run_adjoint(self.recorder, self.backward, entry, tape, contents_of(self.now, wanted))
        self.book.clobbered.extend(clobbered)
        self._watch_finite(operation)
        for number in made:
            for run in self.runs:
                run.drop(number)
        term = total(self.products.anew(parts).values()) - total(after.values())
        jump = Jump(operation.index, "adjoint", term, operation.kernel, operation.place)
        jump.lost = self._lost(operation)
        self.book.jumps.append(jump)

    def _made_by_copy(self, operation: Operation) -> set[int]:
        """Roots that hold nothing before this copy, which fills them whole: an adjoint that a Warp before 1.17 leaves
        in their gradients meets no tangent there."""
        if operation.definition is not None:
            return set()
        kept, first_touch = self.now.bytes, self.now.first_touch
        sources = [a.number for a in operation.accesses if a.read and a.number in kept]
        targets = [a.number for a in operation.accesses if a.written and not a.read and a.number in kept]
        return {
            target
            for target in targets
            if first_touch.get(target) == operation.index
            if any(np.array_equal(kept[source], kept[target]) for source in sources)
        }

    def _stretch(self, stretch: range, entries: list[Any], tape: Any) -> None:
        """Operations of which only the ends are known: one jump for all of them."""
        operations = self.recorder.recording.within(stretch)
        parts = parts_of(p for o in operations for p in o.parts if p[0] in self.now.bytes)
        after = total(self.products.of(parts).values())
        self._undo(stretch.start, WRITTEN)
        tape.launches = entries[stretch.start : stretch.stop]
        self.backward(tape)
        numbers = {number for number, _, _ in parts}
        if self.products.finite and not all(self._is_finite(n) for n in numbers):
            self.products.finite = False
            self.book.nonfinite = {"stretch": stretch.start}
        term = total(self.products.anew(parts).values()) - after
        self.book.jumps.append(Jump(stretch.start, "stretch", term, f"operations to {stretch.stop - 1}", None))

    def _is_finite(self, number: int) -> bool:
        gradients = [part for h in self._gradients.get(number, ()) for part in float_parts(host(h._grad))]
        return all(bool(np.isfinite(g).all()) for g in gradients)

    def _let_go(self, parts: Iterable[Part]) -> None:
        """Behind the first operation that touches them, gradients and shadows are not needed any more."""
        for number, low, high in parts:
            if number in self.kept:
                continue
            term = self.products.of([(number, low, high)]).get(number, Term())
            if term.plus or term.minus:
                continue  # part of what is left at the tape's start
            release(self._gradients, [(number, low, high)])
            for run in self.runs:
                run.forget(number, low, high)
            self.products.forget(number)

    def _updated(self, operation: Operation) -> list[Part]:
        """What the operation reads and changes: an overwrite may be its own, or come later."""
        both = [a.part for a in operation.accesses if a.read and not a.accumulated and operation.overwrites(a)]
        changed = self.now.pending(operation.index, WRITTEN) if both else {}
        return [part for part in both if part[0] in changed]

    def _judge(self, operation: Operation, entry: Any, tape: Any, clobbered: list[Clobbered], left: Contents) -> None:
        holders = [h for n in {n for n, _, _ in operation.parts} for h in self._gradients.get(n, ())]

        def tried(contents: Contents) -> list[np.ndarray]:
            """The gradient buffers that the adjoint would leave; they are put back."""
            start = [np.array(host(h._grad), copy=True) for h in holders]
            run_adjoint(self.recorder, self.backward, entry, tape, contents)
            result = [np.array(host(h._grad), copy=True) for h in holders]
            for holder, content in zip(holders, start):
                overwrite(holder._grad, content.reshape(-1))
            return result

        before = contents_of(self.now, operation.parts)
        numbers = {n for n, _, _ in before}
        at_end = {part: content for part, content in self.tape_end.items() if part[0] in numbers}
        judge(self.recorder, clobbered, tried, before, left, at_end)

    # -- changes that no tape knows --------------------------------------------------------------

    def _gap(self, index: int, operation: Operation) -> None:
        """Changes that no tape knows, between the operation before `index` and it."""
        changed = [run.pending(index, BEFORE) for run in self.runs]
        if not any(changed):
            return
        parts = parts_of((n, low, high) for run in changed for n, ranges in run.items() for low, high in ranges)
        touched = {n for n, _, _ in parts}
        after = self.products.of(parts)
        left = {n: self._contents(n) for n in touched}
        self._undo(index, BEFORE)
        term = total(self.products.anew(parts).values()) - total(after.values())
        writers = [w for n in sorted(touched) for w in writers_between(self.recorder, n, operation)]
        place = next((w["place"] for w in writers if w["place"]), operation.place)
        jump = Jump(index, "unrecorded", term, " and ".join(dict.fromkeys(w["what"] for w in writers)), place)
        jump.writers = [{"what": w["what"], **file_line(w["place"])} for w in writers]
        jump.carried, jump.replaced = self._brought(left)
        self.book.jumps.append(jump)

    def _contents(self, number: int) -> list[np.ndarray]:
        return [run.bytes[number].copy() for run in self.runs if number in run.bytes]

    def _brought(self, left: dict[int, list[np.ndarray]]) -> tuple[float, float]:
        """The two parts of an unrecorded write's jump, over the scalars that it changed: the derivative that the new
        values carry and no adjoint follows, and the adjoint that goes on to the values that were replaced."""
        carried = replaced = 0.0
        for number, new in left.items():
            old = self._contents(number)
            if len(old) < 3 or len(new) < 3 or not self.products.finite:
                continue
            for holder in self._gradients.get(number, ()):
                gradient = host(holder._grad)
                if gradient.dtype.kind != "f":
                    continue
                inner, base = gradient.shape[len(holder.shape) :], self.recorder.roots[number]
                views = [view_of(c, base, holder, gradient.dtype, inner) for c in (*new, *old)]
                changed = np.logical_or.reduce([n != o for n, o in zip(views[:3], views[3:])]) & (gradient != 0.0)
                a, (_, p, m, _, q, r) = gradient[changed].astype(float), (v[changed].astype(float) for v in views)
                carried += float(a @ (p - m)) / (2.0 * self.step)
                replaced += float(a @ (q - r)) / (2.0 * self.step)
        return carried, replaced

    # -- lost terms and non-finite adjoints ------------------------------------------------------

    def _lost(self, operation: Operation) -> list[dict[str, Any]]:
        """Arrays that carry a tangent into the operation and have no gradient buffer."""
        found = []
        _, plus, minus = self.runs
        for access in operation.accesses:
            number = access.number
            if not access.read or access.array._grad is not None:
                continue  # a view taken before requires_grad has no buffer, though its base has one
            if not all(number in run.bytes for run in self.runs):
                continue
            present = host(access.array)
            inner = present.shape[len(access.array.shape) :]
            seen = (
                view_of(run.bytes[number], access.base, access.array, present.dtype, inner) for run in (plus, minus)
            )
            if any(not np.array_equal(p, m) for p, m in zip(*map(float_parts, seen), strict=True)):
                row = describe(self.recorder, access.array, access.label)
                if made_off_tape(self.recorder, number, operation):
                    row["off_tape"] = True
                made = made_of_host_values(self.recorder, access.base)
                if made is not None and not written_on_tape(self.recorder, access.base, operation):
                    row["writer"] = made
                found.append(row)
        return found

    def _watch_finite(self, operation: Operation) -> None:
        if not self.products.finite:
            return
        for access in operation.accesses:
            if access.array._grad is None or self._stays_finite(access.array):
                continue
            bad = ~np.isfinite(scalars(access.array._grad))
            self.products.finite = False
            where = np.flatnonzero(bad)[:LISTED_ELEMENTS]
            inputs = {}
            for other in operation.accesses:
                values = scalars(other.array)
                if other.read and values.size:
                    inputs[other.label] = (
                        [float(values[k % values.size]) for k in where[:3]] if values.dtype.kind in "fiu" else []
                    )
            self.book.nonfinite = {
                "op": operation.index,
                "kernel": operation.kernel,
                **file_line(operation.place),
                "definition": operation.definition,
                "variable": describe(self.recorder, access.array, access.label)["variable"],
                "argument": access.label,
                "elements": [int(k) for k in where],
                "inputs": inputs,
            }
            return

    @staticmethod
    def _stays_finite(array: Any) -> bool:
        return all(bool(np.isfinite(part).all()) for part in float_parts(host(array._grad)))

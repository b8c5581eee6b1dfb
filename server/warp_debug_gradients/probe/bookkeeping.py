"""Step through one backward pass, operation by operation, and keep the adjoint ledger (see `ledger`).

Runs in a forked child of the unperturbed recording, at the moment when the program calls `backward`: the
user's own tape, arrays and gradient buffers are used as they stand. The tape is stepped by handing
`Tape.backward` one entry at a time, last first; the first call, with no entry, only seeds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import names
from .arrays import extent, float_parts, host, overlap, overwrite, scalars
from .gradients import gradient_holders, numbers_of, run_adjoint
from .hooks import Event
from .ledger import Jump, Term
from .recording import Access, Operation, Recorder
from .registry import root
from .shadows import BEFORE, WRITTEN, Shadows, view_of

CHANGED_FRACTION = 1e-6  # adjoints that differ by less than this part of their largest element are the same
LISTED_ELEMENTS = 8


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


@dataclass
class Book:
    """What stepping through the pass found. Terms are per unit of the direction."""

    jumps: list[Jump] = field(default_factory=list)
    seed: Term = field(default_factory=Term)
    stale: list[tuple[Any, Term]] = field(default_factory=list)
    entering: list[tuple[Any, Term]] = field(default_factory=list)  # what is left at the tape's start, per root
    clobbered: list[Clobbered] = field(default_factory=list)
    nonfinite: dict[str, Any] | None = None
    gradient: np.ndarray | None = None


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
    ):
        self.recorder = recorder
        self.now = Shadows.from_state(recorder.shadows.arena, recorder.shadows.state())
        self.plus, self.minus, self.step = plus, minus, step
        self.restore = restore
        self.backward = backward
        self.preset = preset  # roots whose gradient the program itself has filled, to seed a backward without loss
        self.book = Book()
        self.finite = True
        self._known: dict[int, Term] = {}  # terms of roots whose contents and gradients have not changed since
        self.tape_end: dict[int, np.ndarray] = {}  # what the tape left in the roots that changed after it
        self._gradients = gradient_holders(recorder)

    # -- the pass ------------------------------------------------------------------------------

    def run(self, event: Event) -> Book:
        tape, args, kwargs = event.subject, event.args[1:], event.kwargs
        entries = list(tape.launches)
        try:
            changed_since = self.now.pending(len(entries), BEFORE)
            for shadows in (self.now, self.plus, self.minus):
                shadows.undo(len(entries), BEFORE)  # what happened after the tape is no state of the tape
            self.tape_end = {n: self.now.bytes[n].copy() for n in changed_since}
            before = {n: t for n, t in self._all_terms().items() if not self._reseeded(n, event)}
            self.book.stale = [(n, t) for n, t in before.items() if t.plus or t.minus]
            tape.launches = []
            self.backward(tape, *args, **kwargs)  # seeds only
            self.book.seed = _total(t - before.get(n, Term()) for n, t in self._all_terms().items())
            missed = self.recorder.recording.missed
            for operation in reversed(self.recorder.recording.operations):
                self._operation(operation, entries[operation.index], tape)
                self._gap(operation.index, operation)
            if missed:
                self._earlier_operations(entries[:missed], tape)
            self.book.entering = list(self._all_terms().items())
        finally:
            tape.launches = entries
        return self.book

    def _earlier_operations(self, entries: list[Any], tape: Any) -> None:
        """The tape still holds operations from before: their adjoints run again, on what is there now."""
        before = _total(self._all_terms().values())
        tape.launches = entries
        self.backward(tape)
        jump = Jump(
            -1, "adjoint", _total(self._all_terms().values()) - before, "operations of an earlier recording", None
        )
        self.book.jumps.append(jump)

    def _reseeded(self, number: int, event: Event) -> bool:
        """Whether this root's gradient is the seed, so that what it holds is not stale."""
        if number in self.preset:
            return True
        loss = event.argument(1, "loss")
        grads = event.argument(2, "grads")
        seeded = [*([loss] if loss is not None else []), *(grads or {})]
        return any(self.recorder.number(root(a)) == number for a in seeded)

    def _operation(self, operation: Operation, entry: Any, tape: Any) -> None:
        numbers = self._numbers(operation)
        after = self._terms(numbers)
        left = {n: self.now.bytes[n].copy() for n in self._updated(operation)}
        made = self._made_by_copy(operation)
        for shadows in (self.now, self.plus, self.minus):
            shadows.undo(operation.index, WRITTEN)
        clobbered = self._clobbered(operation)
        if clobbered:
            self._judge(operation, entry, tape, clobbered, left)
        self._adjoint(entry, tape, {n: self.now.bytes[n] for n in self._wanted(operation)})
        self.book.clobbered.extend(clobbered)
        self._watch_finite(operation)
        for shadows in (self.now, self.plus, self.minus):
            for number in made:
                shadows.bytes.pop(number, None)
        term = self._terms_anew(numbers)
        jump = Jump(
            operation.index,
            "adjoint",
            _total(term.values()) - _total(after.values()),
            operation.kernel,
            operation.place,
        )
        jump.lost = self._lost(operation)
        self.book.jumps.append(jump)

    def _adjoint(self, entry: Any, tape: Any, contents: dict[int, np.ndarray]) -> None:
        run_adjoint(self.recorder, self.backward, entry, tape, contents)

    def _updated(self, operation: Operation) -> set[int]:
        """The roots that the operation reads and changes: an overwrite may be its own, or come later."""
        both = {
            self.recorder.number(root(a.array))
            for a in operation.accesses
            if a.read and a.written and not a.accumulated
        }
        return both & self.now.pending(operation.index, WRITTEN)

    def _made_by_copy(self, operation: Operation) -> set[int]:
        """Roots that hold nothing before this copy, which fills them whole: an adjoint that a Warp before 1.17 leaves
        in their gradients meets no tangent there."""
        if operation.definition is not None:
            return set()
        sources = [self.recorder.number(root(a.array)) for a in operation.accesses if a.read]
        targets = [self.recorder.number(root(a.array)) for a in operation.accesses if a.written and not a.read]
        kept = self.now.bytes
        return {
            target
            for target in targets
            if target in kept and self.now.first_touch.get(target) == operation.index
            if any(s in kept and np.array_equal(kept[s], kept[target]) for s in sources)
        }

    def _wanted(self, operation: Operation) -> set[int]:
        if self.restore is None:
            return set()
        numbers = {n for n in self._numbers(operation) if n in self.now.bytes}
        return numbers if self.restore == "all" else numbers & self.restore

    def _gap(self, index: int, operation: Operation) -> None:
        """Changes that no tape knows, between the operation before `index` and it."""
        touched = {n for s in (self.now, self.plus, self.minus) for n in s.pending(index, BEFORE)}
        after = self._terms(touched)
        left = {n: self._contents(n) for n in touched}
        for shadows in (self.now, self.plus, self.minus):
            shadows.undo(index, BEFORE)
        if touched:
            term = _total(self._terms_anew(touched).values()) - _total(after.values())
            writers = [w for n in sorted(touched) for w in self._writers_between(n, operation)]
            place = next((w["place"] for w in writers if w["place"]), operation.place)
            jump = Jump(index, "unrecorded", term, " and ".join(dict.fromkeys(w["what"] for w in writers)), place)
            jump.writers = [{"what": w["what"], **_file_line(w["place"])} for w in writers]
            jump.carried, jump.replaced = self._brought(left)
            self.book.jumps.append(jump)

    def _contents(self, number: int) -> list[np.ndarray]:
        return [s.bytes[number].copy() for s in (self.now, self.plus, self.minus) if number in s.bytes]

    def _brought(self, left: dict[int, list[np.ndarray]]) -> tuple[float, float]:
        """The two parts of an unrecorded write's jump, over the scalars that it changed: the derivative that the new
        values carry and no adjoint follows, and the adjoint that goes on to the values that were replaced."""
        carried = replaced = 0.0
        for number, new in left.items():
            old = self._contents(number)
            if len(old) < 3 or len(new) < 3 or not self.finite:
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

    def _writers_between(self, number: int, operation: Operation) -> list[dict[str, Any]]:
        """What may have changed a root between the operation before and this one, though the tape did not."""
        base, recording = self.recorder.roots[number], self.recorder.recording
        low, high = extent(base)
        name = self.describe(base, "an array")["variable"]
        found = [
            {"what": w.what, "place": w.place}
            for w in recording.writes
            if w.before_op == operation.index and w.span[0] < high and low < w.span[1]
        ]
        if found:
            return found
        for other in reversed(recording.operations[: operation.index - recording.missed]):
            if any(a.written and root(a.array) is not base and overlap(a.array, base) for a in other.accesses):
                what = f"kernel {other.kernel}, through another array over the memory of {name}"
                return [{"what": what, "place": other.place}]
        view = self._view_before(low, high, operation.index)
        if view is not None:
            return [{"what": f"a write to {name} through a NumPy view", "place": view.place}]
        return [{"what": f"a write to {name} that no hook saw (a NumPy view, another library)", "place": None}]

    def filled_by(self, number: int) -> dict[str, Any] | None:
        """The last write since the tape was entered that no tape knows, before the first operation on this root."""
        base, recording = self.recorder.roots[number], self.recorder.recording
        low, high = extent(base)
        first = next((o.index for o in recording.operations if any(root(a.array) is base for a in o.accesses)), None)
        found = [
            {"what": w.what, **_file_line(w.place)}
            for w in recording.writes
            if w.span[0] < high and low < w.span[1] and (first is None or w.before_op <= first)
        ]
        return found[-1] if found else None

    def _view_before(self, low: int, high: int, op: int) -> Any | None:
        """The last NumPy view of these bytes that was taken before operation `op`."""
        views = [v for v in self.recorder.recording.views if v.before_op <= op and v.span[0] < high and low < v.span[1]]
        return views[-1] if views else None

    def _unseen_writer(self, low: int, high: int, read_at: int) -> dict[str, Any]:
        """A change that no hook saw: most likely through the first NumPy view taken after the read, else an earlier one."""
        views = [v for v in self.recorder.recording.views if v.span[0] < high and low < v.span[1]]
        after = next((v for v in views if v.before_op > read_at), views[-1] if views else None)
        if after is None:
            return {"what": "a write that no hook saw (a NumPy view, another library)", "file": None, "line": None}
        return {"what": "a write through a NumPy view taken", **_file_line(after.place)}

    # -- terms ---------------------------------------------------------------------------------

    def _numbers(self, operation: Operation) -> set[int]:
        return numbers_of(self.recorder, operation.roots.values())

    def _all_terms(self) -> dict[int, Term]:
        self._known.clear()
        return self._terms(set(self._gradients))

    def _terms(self, numbers: set[int]) -> dict[int, Term]:
        """<Ā, Ṁ> of each root's gradient buffers, with the tangents of now."""
        for n in numbers:
            if n not in self._known and n in self.now.bytes and n in self.plus.bytes and n in self.minus.bytes:
                self._known[n] = _total(self._term(n, holder) for holder in self._gradients.get(n, ()))
        return {n: self._known[n] for n in numbers if n in self._known}

    def _terms_anew(self, numbers: set[int]) -> dict[int, Term]:
        """The same after contents or gradients of these roots have changed."""
        for n in numbers:
            self._known.pop(n, None)
        return self._terms(numbers)

    def _term(self, number: int, holder: Any) -> Term:
        gradient = host(holder._grad)
        if not self.finite or not any(np.any(part) for part in float_parts(gradient)):
            return Term()
        base = self.recorder.roots[number]
        dtype, inner = gradient.dtype, gradient.shape[len(holder.shape) :]
        then = (view_of(s.bytes[number], base, holder, dtype, inner) for s in (self.now, self.plus, self.minus))
        return _total(self._product(*parts) for parts in zip(float_parts(gradient), *map(float_parts, then)))

    def _product(self, gradient: np.ndarray, now: np.ndarray, plus: np.ndarray, minus: np.ndarray) -> Term:
        """<gradient, tangent> of equally shaped plain arrays."""
        used = np.flatnonzero(gradient.reshape(-1))  # memory that nobody has filled yet meets a zero adjoint
        a, m, p, q = (x.reshape(-1)[used].astype(np.float64) for x in (gradient, now, plus, minus))
        forward = float(np.sum(a * (p - m))) / self.step  # no BLAS: its threads fight for the cores
        backward = float(np.sum(a * (m - q))) / self.step
        grid = float(np.finfo(gradient.dtype).eps)
        rounding = 0.3 * grid / self.step * float(np.sqrt(np.sum((a * m)[p != q] ** 2)))
        return Term(forward, backward, rounding)

    # -- reads that were overwritten ------------------------------------------------------------

    def _clobbered(self, operation: Operation) -> list[Clobbered]:
        found = []
        for access in operation.accesses:
            base = root(access.array)
            number = self.recorder.number(base)
            if not access.read or access.accumulated or number not in self.now.bytes:
                continue  # the adjoint of an addition needs no value
            present = host(access.array)
            inner = present.shape[len(access.array.shape) :]
            then = view_of(self.now.bytes[number], base, access.array, present.dtype, inner)
            values = [(now, before) for now, before in zip(_number_parts(present), _number_parts(then))]
            if all(np.array_equal(now, before, equal_nan=now.dtype.kind == "f") for now, before in values):
                continue
            largest = max(_largest(now.astype(np.float64) - before.astype(np.float64)) for now, before in values)
            size = max(_largest(before.astype(np.float64)) for _, before in values)
            found.append(
                Clobbered(
                    operation,
                    access,
                    largest,
                    largest / size if size else float("inf"),
                    access.written,
                    None,
                    {"what": f"kernel {operation.kernel}, the same launch", **_file_line(operation.place)}
                    if access.written
                    else self._writer(operation, access),
                )
            )
        return found

    def _writer(self, operation: Operation, access: Access, behind_tape: bool = False) -> dict[str, Any] | None:
        """The first that changed the root after the operation read it.

        behind_tape: after the whole tape, and None where no hook saw such a write.
        """
        recording = self.recorder.recording
        low, high = extent(access.array)

        def writes(other: Operation) -> bool:
            return any(a.written and overlap(a.array, access.array) for a in other.accesses)

        last = recording.operations[-1].index if behind_tape else operation.index
        behind = recording.operations[last + 1 - recording.missed :]
        later = next((o for o in behind if writes(o)), None)
        beside = (w for w in recording.writes if w.before_op > last)
        outside = next((w for w in beside if w.span[0] < high and low < w.span[1]), None)
        if outside is not None and (later is None or outside.before_op <= later.index):
            return {"what": outside.what, **_file_line(outside.place), "off_tape": recording.only_off_tape(outside)}
        if later is not None:
            return {"what": f"kernel {later.kernel}" if later.definition else later.kernel, **_file_line(later.place)}
        return None if behind_tape else self._unseen_writer(low, high, operation.index)

    def _judge(
        self, operation: Operation, entry: Any, tape: Any, clobbered: list[Clobbered], left: dict[int, np.ndarray]
    ) -> None:
        """Whether the adjoint needs the overwritten values, and whether the operation itself overwrote them.

        left: what the operation left in the roots that it updates. Where the adjoint is right on that, its own
        write did no harm, and the harm came later.
        """
        before = {n: self.now.bytes[n] for n in self._numbers(operation) if n in self.now.bytes}
        as_is, restored = (self._tried(operation, entry, tape, contents) for contents in ({}, before))
        harmful = not same(as_is, restored)
        at_end = {n: c for n, c in self.tape_end.items() if n in before}
        spoilt_behind = bool(at_end) and harmful
        spoilt_behind = spoilt_behind and same(self._tried(operation, entry, tape, {**before, **at_end}), restored)
        later = bool(left) and harmful and same(self._tried(operation, entry, tape, {**before, **left}), restored)
        for item in clobbered:
            item.harmful = harmful
            if later and item.in_kernel:
                item.in_kernel = False
                item.writer = self._writer(operation, item.access)
            if spoilt_behind and self.recorder.number(root(item.access.array)) in at_end:
                behind = self._writer(operation, item.access, behind_tape=True)
                if behind is not None:  # else it was made on the way, and seen at the end only
                    item.in_kernel, item.writer = False, behind

    def _tried(self, operation: Operation, entry: Any, tape: Any, contents: dict[int, np.ndarray]) -> list[np.ndarray]:
        """The gradient buffers that the adjoint would leave; they are put back."""
        holders = [h for n in self._numbers(operation) for h in self._gradients.get(n, ())]
        start = [np.array(host(h._grad), copy=True) for h in holders]
        self._adjoint(entry, tape, contents)
        result = [np.array(host(h._grad), copy=True) for h in holders]
        for holder, content in zip(holders, start):
            overwrite(holder._grad, content.reshape(-1))
        return result

    # -- lost terms and non-finite adjoints ------------------------------------------------------

    def _lost(self, operation: Operation) -> list[dict[str, Any]]:
        """Arrays that carry a tangent into the operation and have no gradient buffer."""
        found = []
        for access in operation.accesses:
            number = self.recorder.number(root(access.array))
            if not access.read or access.array._grad is not None or number not in self.now.bytes:
                continue  # a view taken before requires_grad has no buffer, though its base has one
            present = host(access.array)
            if not float_parts(present) or number not in self.plus.bytes or number not in self.minus.bytes:
                continue
            inner = present.shape[len(access.array.shape) :]
            base = root(access.array)
            plus, minus = (
                view_of(s.bytes[number], base, access.array, present.dtype, inner) for s in (self.plus, self.minus)
            )
            if any(not np.array_equal(p, m) for p, m in zip(float_parts(plus), float_parts(minus))):
                found.append(self.describe(access.array, access.label))
        return found

    def _watch_finite(self, operation: Operation) -> None:
        if not self.finite:
            return
        for access in operation.accesses:
            if access.array._grad is None:
                continue
            bad = ~np.isfinite(scalars(access.array._grad))
            if not bad.any():
                continue
            self.finite = False
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
                **_file_line(operation.place),
                "definition": operation.definition,
                "variable": self.describe(access.array, access.label)["variable"],
                "argument": access.label,
                "elements": [int(k) for k in where],
                "inputs": inputs,
            }
            return

    def describe(self, array: Any, label: str) -> dict[str, Any]:
        """The user's name of an array and where it was made."""
        place = self.recorder.registry.allocated.get(
            self.recorder.registry.serial(array)
        ) or self.recorder.registry.allocated.get(self.recorder.registry.serial(root(array)))
        name = (names.assigned_name(*place) if place else None) or label
        return {"variable": name, "allocated": {"file": place[0], "line": place[1]} if place else None}


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


def _total(terms: Any) -> Term:
    total = Term()
    for term in terms:
        total = total + term
    return total


def _file_line(place: dict[str, Any] | None) -> dict[str, Any]:
    via = (place or {}).get("via")
    where = {"file": place["file"], "line": place["line"]} if place else {"file": None, "line": None}
    return {**where, "via": via} if via else where

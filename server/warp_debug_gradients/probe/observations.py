"""What else a trace shows besides its numbers: facts, not faults."""

from __future__ import annotations

from collections import Counter
from typing import Any, Iterator

from . import names
from .arrays import arrays_in, is_array
from .recorded import Operation
from .recording import Recorder


def observations(recorder: Recorder, seed_spent: bool, seeds: set[int]) -> list[dict[str, Any]]:
    """Each once. seed_spent: the seed array was emptied by an earlier pass. seeds: roots that backward starts from."""
    found = [*_of_the_tape(recorder, seed_spent), *_after_loss(recorder, seeds)]
    found += [*_disabled(recorder), *_retained(recorder), *_launched_twice(recorder)]
    return list({repr(item): item for item in found}.values())


def _row(kind: str, message: str, place: dict[str, Any] | None = None, variable: str | None = None) -> dict[str, Any]:
    where = place or {}
    return {
        "kind": kind,
        "message": message,
        "file": where.get("file"),
        "line": where.get("line"),
        "variable": variable,
    }


def _of_the_tape(recorder: Recorder, seed_spent: bool) -> Iterator[dict[str, Any]]:
    if seed_spent:
        yield _row(
            "seed_spent",
            "the seed array was emptied by an earlier backward pass and is handed over again: it seeds nothing",
        )
    held = recorder.recording.held_before
    if held:
        again = recorder.recording.reentered
        how = "it was entered again without reset" if again else "its `with` block was not left since"
        yield _row(
            "tape_reentered" if again else "tape_left_open",
            f"the tape already held {held} operations of an earlier recording: {how}, and its backward pass runs them again",
        )


def _after_loss(recorder: Recorder, seeds: set[int]) -> Iterator[dict[str, Any]]:
    """The kernels recorded after the last operation that writes what backward is seeded with."""
    operations = recorder.recording.operations
    makers = [o.index for o in operations if any(a.written and a.number in seeds for a in o.accesses)]
    late = [o for o in operations if makers and o.index > max(makers) and o.definition is not None]
    for operation in {(o.kernel, repr(o.place)): o for o in late}.values():
        yield _row(
            "after_loss",
            f"{operation.kernel} is recorded after the operation that makes what backward starts from: "
            "it is no part of the forward pass",
            operation.place,
        )


def _disabled(recorder: Recorder) -> Iterator[dict[str, Any]]:
    for operation in recorder.recording.operations:
        if operation.disabled:
            message = f"kernel {operation.kernel} is built with enable_backward=False: its adjoint does nothing"
            yield _row("backward_disabled", message, operation.place, operation.kernel)


def _retained(recorder: Recorder) -> Iterator[dict[str, Any]]:
    operations = recorder.recording.operations
    writers: Counter[int] = Counter()
    for operation in operations:
        writers.update({id(a.array) for a in operation.accesses if a.written})
    for operation in operations:
        for access in operation.accesses:
            count = writers[id(access.array)]
            if access.written and count > 1 and getattr(access.array, "retain_grad", False):
                message = (
                    f"an array with retain_grad=True is written {count} times: its gradient is not consumed, "
                    "so contributions count again"
                )
                yield _row("retain_grad", message, operation.place, _variable(recorder, access.array) or access.label)


def _launched_twice(recorder: Recorder) -> Iterator[dict[str, Any]]:
    seen: dict[Any, int] = {}
    for operation in recorder.recording.operations:
        key = _signature(operation, recorder.recording.tape)
        own = {a.array.ptr for a in operation.accesses if a.read}  # what feeds itself is a step, not a repetition
        stored = any(a.written and not a.read and a.array.ptr not in own for a in operation.accesses)
        if seen.get(key) == operation.index - 1 and stored and operation.definition:
            message = f"the same launch of {operation.kernel} is recorded twice in a row on the same arrays"
            yield _row("duplicate_launch", message, operation.place)
        seen[key] = operation.index


def _signature(operation: Operation, tape: Any) -> tuple[Any, ...]:
    """Equal for launches that do the same: at one line, over as many threads, with the same arrays and numbers."""
    arrays = tuple((a.label, a.array.ptr, tuple(a.array.shape)) for a in operation.accesses)
    _, threads, _, inputs, outputs, *_ = tape.launches[operation.index] if operation.definition else [None] * 5
    values = [v for v in (*(inputs or ()), *(outputs or ())) if not is_array(v) and not any(arrays_in(v))]
    numbers = tuple(repr(getattr(v, "value", v)) for v in values)  # wp.float32(2.0) as 2.0, a vector by its components
    return operation.kernel, (operation.place or {}).get("line"), arrays, repr(threads), numbers


def _variable(recorder: Recorder, array: Any) -> str | None:
    """The variable that the array was assigned to where it was made."""
    place = recorder.registry.allocated.get(recorder.registry.serial(array))
    return names.assigned_name(*place) if place else None

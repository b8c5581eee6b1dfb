"""Values that leave the tape by the host and come back: looks at arrays while it records, arrays made of numbers, numbers
that are handed to launches."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Iterable

import numpy as np

from . import names
from .access import is_array_type
from .arrays import is_array, struct_fields
from .events import FROM_HOST
from .recorded import Read

if TYPE_CHECKING:
    from .recording import Recorder

MADE = "wp.array()"  # what an array made of host values is written by

Numbers = dict[int, dict[str, tuple[float, ...]]]  # operation -> argument -> its floating-point values


def made_of_host_values(recorder: Recorder, base: Any) -> dict[str, Any] | None:
    """The writer of an array that was made of host values since the tape was entered; None for any other array."""
    registry, recording = recorder.registry, recorder.recording
    serial = registry.serial(base)
    place = registry.allocated.get(serial)
    if serial < recording.made_before or place is None or not base.__dict__.get(FROM_HOST):
        return None
    return {"what": MADE, "file": place[0], "line": place[1], "read": read_before(recorder, made=serial)}


def read_before(
    recorder: Recorder, *, event: int | None = None, made: int | None = None, op: int | None = None
) -> dict[str, Any] | None:
    """The last look of the host at an array that the tape follows, before an event, an array, or an operation."""
    found = [
        r
        for r in recorder.recording.reads
        if r.followed
        and (event is None or r.event < event)
        and (made is None or r.made <= made)
        and (op is None or r.before_op <= op)
    ]
    return _described(recorder, found[-1]) if found else None


def _described(recorder: Recorder, read: Read) -> dict[str, Any]:
    registry = recorder.registry
    places = (registry.allocated.get(read.serial), registry.bound.get(read.serial))
    name = next((n for at in places if at and (n := names.assigned_name(*at))), None)
    where = read.place or {}
    return {"variable": name, "how": read.how, "file": where.get("file"), "line": where.get("line")}


def numbers_of(recorder: Recorder) -> Numbers:
    """The floating-point numbers that the launches of the tape are given, of operations that are recorded singly."""
    found: Numbers = {}
    tape, without = recorder.recording.tape, dict[int, bool]()  # by kernel: whether all its arguments are arrays
    for operation in recorder.recording.operations:
        entry = tape.launches[operation.index]
        if callable(entry) or not recorder.is_single(operation.index):
            continue
        kernel, _, _, inputs, outputs, *_ = entry
        if id(kernel) not in without:
            without[id(kernel)] = all(is_array_type(argument.type) for argument in kernel.adj.args)
        if without[id(kernel)]:
            continue
        given = zip(kernel.adj.args, (*(inputs or ()), *(outputs or ())), strict=False)
        values = {label: each for argument, value in given for label, each in _floats(argument.label, value)}
        if values:
            found[operation.index] = values
    return found


def _floats(label: str, value: Any) -> Iterable[tuple[str, tuple[float, ...]]]:
    """(label, its floating-point values): of a number, of a vector or matrix, of the fields of a struct."""
    if value is None or isinstance(value, (bool, int, str)) or is_array(value):
        return
    if isinstance(value, (float, np.floating)):
        yield label, (float(value),)
        return
    fields = struct_fields(value)
    if fields is not None:
        for name, each in fields:
            yield from _floats(f"{label}.{name}", each)
        return
    plain = getattr(value, "value", value)  # wp.float32(2.0)
    if isinstance(plain, float):
        yield label, (plain,)
    elif hasattr(value, "_length_") or isinstance(value, (tuple, list, np.ndarray)):
        yield from _several(label, value)


def _several(label: str, value: Any) -> Iterable[tuple[str, tuple[float, ...]]]:
    try:
        flat = np.asarray(value)
    except (TypeError, ValueError):
        return
    if flat.dtype.kind == "f" and flat.size:
        yield label, tuple(float(x) for x in flat.reshape(-1))


def that_follow(plus: Numbers, minus: Numbers) -> dict[int, list[dict[str, Any]]]:
    """The launch arguments that are other numbers at +h than at -h: they follow the parameter, and no adjoint does. Pure.

    Returns operation -> [{"argument", "plus", "minus"}], of a vector the component that moves most.
    """
    found: dict[int, list[dict[str, Any]]] = {}
    for op, arguments in plus.items():
        for label, values in arguments.items():
            others = minus.get(op, {}).get(label, ())
            pairs = [(p, m) for p, m in zip(values, others, strict=False) if p != m and math.isfinite(p - m)]
            if pairs:
                p, m = max(pairs, key=lambda pair: abs(pair[0] - pair[1]))
                found.setdefault(op, []).append({"argument": label, "plus": p, "minus": m})
    return found


def note_numbers(recorder: Recorder, following: dict[int, list[dict[str, Any]]], jumps: list[dict[str, Any]]) -> None:
    """Adds `host_values` to the rows of the launch lines whose numbers follow the parameter."""
    for op, arguments in sorted(following.items()):
        operation = recorder.recording.at(op)
        where = operation.place or {}
        at = (where.get("file"), where.get("line"), operation.kernel)
        for row in jumps:
            if (row["file"], row["line"], row["kernel"]) == at and "host_values" not in row:
                row["host_values"] = [{**each, "read": read_before(recorder, op=op)} for each in arguments]

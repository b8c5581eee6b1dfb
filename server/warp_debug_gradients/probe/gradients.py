"""The gradient buffers of a recording, and one adjoint run on given contents."""

from __future__ import annotations

from typing import Any, Iterable

import numpy as np

from .recording import Recorder
from .registry import root
from .shadows import memory


def gradient_holders(recorder: Recorder) -> dict[int, list[Any]]:
    """Root's number -> the arrays over its memory that own a gradient buffer of their own."""
    found: dict[int, list[Any]] = {n: [base] for n, base in recorder.roots.items() if base._grad is not None}
    for operation in recorder.recording.operations:
        for access in operation.accesses:
            _add(found, recorder, access.array)
    return found


def _add(found: dict[int, list[Any]], recorder: Recorder, array: Any) -> None:
    """A view whose gradient buffer is not part of its root's is an adjoint of the same memory, too."""
    if array._grad is None or not array.device.is_cpu:
        return
    holders = found.setdefault(recorder.number(root(array)), [])
    start = array._grad.ptr
    if not any(h._grad.ptr <= start < h._grad.ptr + max(h._grad.capacity, 1) for h in holders):
        holders.append(array)


def run_adjoint(recorder: Recorder, backward: Any, entry: Any, tape: Any, contents: dict[int, np.ndarray]) -> None:
    """Run one entry's adjoint while the numbered roots have the given contents (uint8); they are put back."""
    saved = []
    for number, content in contents.items():
        live = memory(recorder.roots[number])
        if not np.array_equal(live, content):
            saved.append((live, live.copy()))
            live[:] = content
    tape.launches = [entry]
    backward(tape)
    for live, content in saved:
        live[:] = content


def numbers_of(recorder: Recorder, bases: Iterable[Any]) -> set[int]:
    """The numbers of root arrays."""
    return {recorder.number(base) for base in bases}

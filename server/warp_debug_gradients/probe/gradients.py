"""The gradient buffers of a recording, and one adjoint run on given contents."""

from __future__ import annotations

import ctypes
import mmap
import sys
from typing import Any, Iterable

import numpy as np

from .cuts import Part
from .recording import Recorder
from .shadows import LIBC, PAGE, is_zero, memory

Contents = dict[Part, np.ndarray]  # bytes of parts of roots, dtype uint8


def gradient_holders(recorder: Recorder) -> dict[int, list[Any]]:
    """Root's number -> the arrays over its memory that own a gradient buffer of their own."""
    found: dict[int, list[Any]] = {n: [base] for n, base in recorder.roots.items() if base._grad is not None}
    accesses = [a for o in recorder.recording.operations for a in o.accesses if a.base.device.is_cpu]
    for access in accesses:
        if access.base._grad is not None and access.number not in found:
            found[access.number] = [access.base]
    for access in accesses:
        if access.array is not access.base:
            _add(found, access.number, access.array)
    return found


def _add(found: dict[int, list[Any]], number: int, array: Any) -> None:
    """A view whose gradient buffer is not part of its root's is an adjoint of the same memory, too."""
    if array._grad is None:
        return
    holders = found.setdefault(number, [])
    start = array._grad.ptr
    if not any(h._grad.ptr <= start < h._grad.ptr + max(h._grad.capacity, 1) for h in holders):
        holders.append(array)


def run_adjoint(recorder: Recorder, backward: Any, entry: Any, tape: Any, contents: Contents) -> None:
    """Run one entry's adjoint while the parts have the given contents; they are put back."""
    saved = []
    for (number, low, high), content in contents.items():
        live = memory(recorder.roots[number])[low:high]
        if not np.array_equal(live, content):
            saved.append((live, live.copy()))
            live[:] = content
    tape.launches = [entry]
    backward(tape)
    for live, content in reversed(saved):  # parts may overlap
        live[:] = content


def contents_of(shadows: Any, parts: Iterable[Part]) -> Contents:
    """The parts' contents where a run is now, as views."""
    return {(n, low, high): shadows.bytes[n][low:high] for n, low, high in parts if n in shadows.bytes}


def copied(contents: Contents) -> Contents:
    """The same, to be kept while the run goes further back."""
    return {part: content.copy() for part, content in contents.items()}


def release(holders: dict[int, list[Any]], parts: Iterable[Part]) -> None:
    """Let go of the memory of gradients that no adjoint touches any more; they read as zero then.

    Only in a child that ends soon: a backward pass there would otherwise keep a second copy of all gradients.
    """
    for number, low, high in parts:
        for holder in holders.get(number, ())[:1]:
            gradient = holder._grad
            owns = holder._ref is None and gradient._ref is None and gradient.is_contiguous
            if owns and gradient.device.is_cpu and gradient.capacity >= high and sys.platform.startswith("linux"):
                first, last = -(-(gradient.ptr + low) // PAGE) * PAGE, (gradient.ptr + high) // PAGE * PAGE
                if last > first:
                    _madvise(first, last - first, mmap.MADV_DONTNEED)


def release_zeros(holders: dict[int, list[Any]]) -> None:
    """Let go of the memory of all gradients that are zero, as before a backward pass: its forked passes get new pages.

    They would copy these first, each a second time all gradients' memory.
    """
    for number, listed in holders.items():
        for holder in listed[:1]:
            gradient = holder._grad
            if gradient.capacity >= PAGE and is_zero(gradient.ptr, gradient.capacity):
                release(holders, [(number, 0, gradient.capacity)])


def _madvise(address: int, size: int, advice: int) -> None:
    LIBC.madvise(ctypes.c_void_p(address), ctypes.c_size_t(size), advice)

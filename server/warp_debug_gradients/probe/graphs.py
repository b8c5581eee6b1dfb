"""Captured graphs, followed: what a capture records is executed again, call by call, at every launch of the graph.

Inside `wp.ScopedCapture` operations are recorded, not executed (on CPU, too), and `wp.capture_launch` replays
them below Python, where no hook sees them. So the calls of a capture are kept as they were made, Warp's own
capture going on untouched, and `capture_launch` makes the same calls again, eagerly and in order: the same
operations on the same memory, now as events.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator

import numpy as np

# What a graph executes. Reads by the host, allocations and the tape's own bookkeeping happen at capture only.
EXECUTED = frozenset(
    {"launch", "command", "copy", "zero_", "fill_", "assign", "native", "backward", "tape_zero", "tape_reset"}
)
MARKERS = frozenset({"tape_enter", "tape_exit", "record_func"})  # what launches do not execute


@dataclass
class Call:
    """One call made during a capture. tape, entries: the tape that recorded it, and as which operations."""

    kind: str
    subject: Any
    original: Callable
    args: tuple
    kwargs: dict
    place: dict[str, Any] | None
    tape: Any = None
    entries: range = range(0)
    launches: list[Any] | None = None  # of a backward: the operations that it ran over


@dataclass
class Capture:
    """The calls of one capture, in order. unfollowed: why this graph can only be launched by Warp itself."""

    calls: list[Call] = field(default_factory=list)
    graph: Any = None
    unfollowed: str | None = None


def first_contents(array: Any, args: tuple, kwargs: dict, place: Any) -> list[Call]:
    """What each launch of the graph does to an array that was made during the capture.

    The capture records, and does not execute, the copy of the given data and the zeroing of the gradient buffer.
    """
    calls = []
    data = args[1] if len(args) > 1 else kwargs.get("data")
    owns = array.ptr is not None and array._ref is None and kwargs.get("ptr") is None
    if owns and data is not None:
        values = data.copy() if isinstance(data, np.ndarray) else data  # the program may change its own
        calls.append(Call("assign", array, type(array).assign, (array, values), {}, place))
    if owns and array._grad is not None and kwargs.get("grad") is None:
        calls.append(Call("zero_", array._grad, type(array).zero_, (array._grad,), {}, place))
    return calls


class Graphs:
    """The captures of the program, by graph."""

    def __init__(self, context: Any):
        self._context = context
        self.active: Capture | None = None
        self._known: dict[int, Capture] = {}
        self.replayed_tape: Any = None

    @property
    def runtime(self) -> Any:
        return self._context.runtime

    @property
    def in_use(self) -> bool:
        """Whether anything has been captured yet."""
        return self.active is not None or bool(self._known)

    def begin(self) -> None:
        self.active = Capture()

    def end(self, graph: Any) -> None:
        if self.active is not None:
            self.active.graph = graph
            self._known[id(graph)] = self.active
        self.active = None

    def of(self, graph: Any) -> Capture | None:
        """The capture to follow for this graph; None where Warp has to launch it."""
        known = self._known.get(id(graph))
        return known if known is not None and known.unfollowed is None and known.calls else None

    def record(self, kind: str, subject: Any, original: Callable, args: tuple, kwargs: dict, place: Any) -> Any:
        """Make a call during a capture, and keep it for the launches of the graph."""
        assert self.active is not None
        tape = self.runtime.tape
        count = len(tape.launches) if tape is not None else 0
        launches = list(subject.launches) if kind == "backward" else None
        result = original(*args, **kwargs)
        if kind in EXECUTED or kind in MARKERS:
            entries = range(count, len(tape.launches)) if tape is not None else range(0)
            call = Call(kind, subject, original, args, kwargs, place, tape, entries, launches)
            self.active.calls.append(call)
        elif kind == "create":
            self.active.calls.extend(first_contents(subject, args, kwargs, place))
        return result

    @contextmanager
    def replaying(self, call: Call) -> Iterator[Callable]:
        """The function to call for one kept call, with the tape as it was; nothing is recorded anew."""
        active = self.runtime.tape
        self.runtime.tape = None
        saved = None
        if call.kind == "backward":
            saved, call.subject.launches = call.subject.launches, list(call.launches or ())
        try:
            yield (lambda *args, **kwargs: None) if call.kind in MARKERS or call.kind == "tape_reset" else call.original
        finally:
            if saved is not None:
                call.subject.launches = saved
            self.runtime.tape = active

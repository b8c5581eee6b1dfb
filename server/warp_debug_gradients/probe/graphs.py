"""Captured graphs, followed: what a capture records is executed again, call by call, at every launch of the graph.

Inside `wp.ScopedCapture` operations are recorded, not executed (on CPU, too), and `wp.capture_launch` replays
them below Python, where no hook sees them. So the calls of a capture are kept as they were made, Warp's own
capture going on untouched, and `capture_launch` makes the same calls again, eagerly and in order: the same
operations on the same memory, now as events. What `wp.capture_if` and `wp.capture_while` let the device
decide is decided here by the same array: each of their callbacks is called once, at the capture, and its calls kept.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Callable, Generator, Iterator

import numpy as np

from .arrays import first_scalar

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
    original: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    place: dict[str, Any] | None
    tape: Any = None
    entries: range = range(0)
    launches: list[Any] | None = None  # of a backward: the operations that it ran over
    branches: list[list[Call]] = field(default_factory=list)  # of a condition (`subject`): what it chooses among


@dataclass
class Capture:
    """The calls of one capture, in order. unfollowed: why this graph can only be launched by Warp itself."""

    began: int = 0  # the next event's number when it began
    calls: list[Call] = field(default_factory=list)
    graph: Any = None
    unfollowed: str | None = None


def first_contents(array: Any, args: tuple[Any, ...], kwargs: dict[str, Any], place: Any) -> list[Call]:
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


def _nothing(*args: Any, **kwargs: Any) -> None:
    """In the place of what is not called again."""


class Graphs:
    """The captures of the program, by graph."""

    def __init__(self, context: Any):
        self._context = context
        self.active: Capture | None = None
        self._known: dict[int, Capture] = {}
        self.spans: list[tuple[int, int]] = []  # events between which a capture recorded, and nothing was executed
        self.replayed_tape: Any = None

    @property
    def runtime(self) -> Any:
        return self._context.runtime

    @property
    def in_use(self) -> bool:
        """Whether anything has been captured yet."""
        return self.active is not None or bool(self._known)

    def begin(self, event: int) -> None:
        self.active = Capture(began=event)

    def end(self, graph: Any, event: int) -> None:
        if self.active is not None:
            self.spans.append((self.active.began, event))
            self.active.graph = graph
            self._known[id(graph)] = self.active
        self.active = None

    def of(self, graph: Any) -> Capture | None:
        """The capture to follow for this graph; None where Warp has to launch it."""
        known = self._known.get(id(graph))
        return known if known is not None and known.unfollowed is None and known.calls else None

    def record(
        self,
        kind: str,
        subject: Any,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        place: Any,
    ) -> Any:
        """Make a call during a capture, and keep it for the launches of the graph."""
        assert self.active is not None
        tape = subject if kind in ("record_func", "tape_enter") else self.runtime.tape
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
    def condition(self, kind: str, condition: Any, place: Any) -> Generator[Callable[..., Any], None, None]:
        """A `capture_if` or `capture_while` during a capture. Gives what each callback is to be replaced with."""
        capture, tape = self.active, self.runtime.tape
        assert capture is not None
        call = Call(kind, condition, _nothing, (), {}, place)
        capture.calls.append(call)
        expected = calls = 0

        def kept(callback: Any) -> Any:
            nonlocal expected
            branch: list[Call] = []
            call.branches.append(branch)
            if not callable(callback):
                if callback is not None:
                    capture.unfollowed = f"wp.{kind} is given a graph"
                return callback
            expected += 1

            def recorded(*args: Any, **kwargs: Any) -> Any:
                nonlocal calls
                calls += 1
                before, capture.calls = capture.calls, branch
                try:
                    return callback(*args, **kwargs)
                finally:
                    capture.calls = before

            return recorded

        yield kept
        if tape is not None:
            capture.unfollowed = f"wp.{kind} is called while a tape records, which notes its body once"
        elif calls != expected:  # this Warp decides at the capture
            capture.unfollowed = f"it holds wp.{kind}"

    def chosen(self, call: Call) -> Iterator[list[Call]]:
        """The branches of a condition as its array decides now; of a loop the body, as often as it goes on."""
        if call.kind == "capture_if":
            branches = [*call.branches, [], []]
            yield branches[0 if first_scalar(call.subject) else 1]
            return
        while first_scalar(call.subject):
            yield call.branches[0]

    def not_followed(self, graph: Any) -> str:
        """Why Warp launches this graph itself."""
        known = self._known.get(id(graph))
        if known is None:
            return "it was not captured in the thread that trains"
        return known.unfollowed or "nothing that was captured could be kept"

    @contextmanager
    def replaying(self, call: Call) -> Generator[Callable[..., Any], None, None]:
        """The function to call for one kept call, with the tape as it was; nothing is recorded anew."""
        active = self.runtime.tape
        self.runtime.tape = None
        saved = None
        if call.kind == "backward":
            saved, call.subject.launches = call.subject.launches, list(call.launches or ())
        try:
            yield _nothing if call.kind in MARKERS or call.kind == "tape_reset" else call.original
        finally:
            if saved is not None:
                call.subject.launches = saved
            self.runtime.tape = active

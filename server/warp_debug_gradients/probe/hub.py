"""Counts the events and passes them on to a listener; decides which of Warp's functions are watched at all.

A listener gets `before(event)`, `after(event)` and `created(array)`; this file knows nothing of gradients.
"""

from __future__ import annotations

import sys
from threading import get_ident
from typing import Any, Callable, Iterable, NamedTuple

from .arrays import IS_QUIET
from .events import Event, Listener
from .graphs import Graphs

# What a run that waits for nothing but backward goes on watching (see Hub.stand_down).
CAPTURES = ("capture_begin", "capture_end", "capture_launch", "capture_if", "capture_while")
_ALWAYS_PATCHED = frozenset({"backward", "__enter__", *CAPTURES})  # a tape may be entered in another thread


class Patch(NamedTuple):
    """An attribute of Warp's that a wrapper has taken the place of."""

    owner: Any
    name: str
    original: Any
    wrapper: Any


class Hub:
    """Counts events and passes them on. Events of other threads and of the probe itself are not seen."""

    def __init__(self, listener: Listener, context: Any, place_of_caller: Callable[[], Any] = lambda: None):
        self.listener = listener
        self.context = context
        self.graphs = Graphs(context)
        self.place_of_caller = place_of_caller
        self.count = 0
        self.depth = 0
        self.compile_seconds = 0.0
        self._thread = get_ident()
        self._following = False
        self.idle_before = 0  # events below this number are only counted, but for backward: nobody waits for them
        self.creations: frozenset[int] | set[int] | None = None  # those that are told as events; None: all
        self._patches: list[Patch] = []

    def patch(self, owner: Any, name: str, wrapper: Any) -> None:
        """Put `wrapper` in the place of an attribute of Warp's."""
        self._patches.append(Patch(owner, name, owner.__dict__.get(name, getattr(owner, name)), wrapper))
        setattr(owner, name, wrapper)

    def stand_down(self, creations: bool) -> None:
        """From here on only backward is waited for: Warp's own functions come back, and cost nothing.

        creations: the numbers of arrays still to be made are needed. Captures of graphs stay watched, since a
        backward may be called inside one; the first one has everything watched again.
        """
        if self.graphs.in_use:
            return
        self.idle_before = sys.maxsize  # for those that hold a wrapper under a name of their own
        for patch in self._patches:
            if patch.name not in _ALWAYS_PATCHED and not (creations and patch.name == "__init__"):
                setattr(patch.owner, patch.name, patch.original)

    def stand_up(self) -> None:
        """Undo `stand_down`, but for the events' numbers."""
        for patch in self._patches:
            setattr(patch.owner, patch.name, patch.wrapper)

    def follow_thread(self) -> None:
        """A tape is entered: the first thread that does so is the one that trains, and the one that is watched."""
        if not self._following and self.depth == 0:
            self._thread, self._following = get_ident(), True

    def unseen(self) -> bool:
        return self.depth > 0 or IS_QUIET[0] or get_ident() != self._thread

    def is_idle(self, kind: str) -> bool:
        return kind != "backward" and self.graphs.active is None

    def passes_over_creation(self) -> bool:
        """Whether the next event, an array that is made, is only counted: nobody asks for it."""
        waits = self.creations is None or self.count in self.creations
        return (not waits or self.count < self.idle_before) and self.graphs.active is None

    def count_only(self, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An event that nobody waits for: the fast path of evaluations."""
        self.count += 1
        self.depth += 1
        try:
            return original(*args, **kwargs)
        finally:
            self.depth -= 1

    def run(
        self,
        kind: str,
        subject: Any,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        replay: Any = None,
    ) -> Any:
        """Make a call as an event; during a capture, keep it for the launches of the graph instead."""
        if self.graphs.active is not None:
            self.count += 1
            self.depth += 1
            try:
                return self.graphs.record(kind, subject, original, args, kwargs, self.place_of_caller())
            finally:
                self.depth -= 1
        runtime = self.context.runtime
        if replay is not None:
            tape = replay.tape
        elif kind == "record_func":  # it may be called outside of the tape's `with`
            tape = subject
        else:
            tape = runtime.tape if runtime is not None else None
        function = replay.original if replay is not None else original
        event = Event(self.count, kind, subject, args, kwargs, tape, replay, function)
        self.count += 1
        self.listener.before(event)  # may fork; a child may end here
        self.depth += 1
        try:
            event.result = original(*args, **kwargs)
        finally:
            self.depth -= 1
        self.listener.after(event)
        return event.result

    def launch_graph(
        self, graph: Any, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Make the calls of a captured graph again, each as an event."""
        capture = self.graphs.of(graph)
        if capture is None:
            return self.run("capture_launch", self.graphs.not_followed(graph), original, args, kwargs)
        self._make_again(capture.calls)
        return None

    def _make_again(self, calls: Iterable[Any]) -> None:
        for call in calls:
            if call.branches:
                for branch in self.graphs.chosen(call):
                    self._make_again(branch)
                continue
            with self.graphs.replaying(call) as function:
                if self.count < self.idle_before and call.kind != "backward":
                    self.count_only(function, call.args, call.kwargs)
                    continue
                self.run(call.kind, call.subject, function, call.args, call.kwargs, replay=call)

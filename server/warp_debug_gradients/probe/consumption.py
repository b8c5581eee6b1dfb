"""Which gradient did the update use? A pure function over what was seen of one parameter.

A parameter's history is a list of entries in the order in which they happened:

    write     the parameter got new values (an update, an assignment, a new array)
    backward  a backward pass ended; `gradient` is the parameter's buffer then
    read      the buffer was read: by the host, by a launch, by an optimizer, by another framework
    zero      the buffer was zeroed

An *iteration* runs from one write to the next and holds at least one backward. Within it the buffer is
consumed once a *segment* (the stretch between zeroings); what the update used is the sum over the
segments that were read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

Kind = Literal["write", "backward", "read", "zero"]


@dataclass
class Entry:
    """One thing that happened to a parameter or its gradient buffer.

    gradient: the buffer's scalars (flat) or None where only norms are kept (a run that only watches).
    same: for a read, whether the buffer still held what the last backward left (None: no backward yet).
    held: for a read, whether the array that the host got is a live view that somebody still holds; for a
    zeroing, whether it happened under such a view. unchanged: for a write, that the values stayed the same.
    borrowed: a write of another parameter, which begins a new iteration of this one too. left_behind: a read of the buffer
    of an earlier array of the same variable, which no tape reads any more.
    """

    kind: Kind
    event: int
    call: int = -1
    gradient: np.ndarray | None = None
    norm: float = float("nan")
    same: bool | None = None
    held: bool = False
    unchanged: bool = False
    borrowed: bool = False
    left_behind: bool = False
    place: dict[str, Any] | None = None
    how: str = ""


@dataclass
class Consumed:
    """The gradient that an iteration's update used.

    when: 'after' backward (as it should be), 'before' (a stale read), 'zeroed' (read after zeroing), 'left_behind' (another
    array's buffer was read), 'unseen'.
    calls: the backward calls whose gradient is in it. parts: how many reads it is the sum of, where the buffer was
    zeroed between reads. discarded: calls whose gradient was zeroed unread.
    """

    gradient: np.ndarray | None
    norm: float
    when: Literal["after", "before", "zeroed", "left_behind", "unseen"]
    calls: list[int]
    discarded: list[int]
    read: Entry | None
    edited: bool
    end_event: int
    parts: int = 1


@dataclass
class _Segment:
    calls: list[int] = field(default_factory=list)
    gradient: np.ndarray | None = None
    norm: float = 0.0
    read: Entry | None = None
    read_gradient: np.ndarray | None = None
    read_norm: float = 0.0
    read_calls: list[int] = field(default_factory=list)
    edited: bool = False


def split_iterations(history: list[Entry], updates: Sequence[int] = ()) -> list[list[Entry]]:
    """Cut a history at the writes; stretches without a backward join the next one.

    updates: sorted events at which *other* parameters were updated. A backward pass before such an update and one
    after it belong to different iterations of the program, also of a parameter that the update left alone (it is
    trained every other time, or its gradient is only printed), if the buffer was zeroed in between.
    """
    iterations: list[list[Entry]] = []
    current: list[Entry] = []
    for entry in history:
        ended = any(e.kind == "backward" for e in current)
        if ended and entry.kind == "backward" and _is_clean(current):
            update = _last_update(current, entry, updates)
            if update is not None:
                iterations.append([e for e in current if e.event <= update])
                current = [Entry("write", update, borrowed=True), *(e for e in current if e.event > update)]
        elif ended and entry.kind == "write":
            iterations.append(current)
            current = []
        current.append(entry)
    if any(e.kind == "backward" for e in current):
        iterations.append(current)
    return iterations


def _is_clean(entries: list[Entry]) -> bool:
    """Whether the buffer was zeroed after the last backward: the next one starts from nothing."""
    return next((e.kind == "zero" for e in reversed(entries) if e.kind in ("backward", "zero")), False)


def _last_update(current: list[Entry], following: Entry, updates: Sequence[int]) -> int | None:
    """The last of `updates` between the last backward of `current` and the one that follows."""
    last = max(e.event for e in current if e.kind == "backward")
    between = [u for u in updates if last < u < following.event]
    return between[-1] if between else None


def spans_updates(iteration: list[Entry], updates: Sequence[int]) -> bool:
    """Whether other parameters were updated between backward passes whose gradients are summed here."""
    events = [e.event for e in iteration if e.kind == "backward"]
    return any(events[0] < u < events[-1] for u in updates)


def update_events(history: list[Entry]) -> list[int]:
    """The events at which a parameter got new values after a backward pass."""
    found, seen = [], False
    for entry in history:
        seen = seen or entry.kind == "backward"
        if seen and entry.kind == "write" and not entry.unchanged:
            found.append(entry.event)
    return found


def zeroed_under_view(history: list[Entry]) -> bool:
    """Whether every update used a live view of the gradient that had been zeroed before it was used.

    On CPU `g = x.grad.numpy()` is a view: after `tape.zero()` it holds zeros. Who used g before cannot be
    told from who used it after, except by the parameter: if it never moves although its gradient is not
    zero, the zeros were used.
    """
    iterations = split_iterations(history)
    updates = [it[0] for it in iterations[1:] if it[0].kind == "write"]
    if not updates or not all(w.unchanged for w in updates):
        return False
    for it in iterations[:-1]:
        read = any(e.kind == "read" for e in it)
        under_view = any(e.kind == "zero" and e.held for e in it)
        moved = any(e.kind == "backward" and e.norm > 0.0 for e in it)
        if not (read and under_view and moved):
            return False
    return True


def consumed(iteration: list[Entry]) -> Consumed:
    """What one iteration's update used. `iteration` holds at least one backward entry."""
    segments = [_Segment()]
    early: Entry | None = None
    after_zero: Entry | None = None
    left_behind: Entry | None = None
    for entry in iteration:
        now = segments[-1]
        if entry.kind == "backward":
            now.calls.append(entry.call)
            now.gradient, now.norm = entry.gradient, entry.norm
        elif entry.kind == "read" and entry.left_behind:
            left_behind = entry
        elif entry.kind == "read" and now.calls:
            if now.read is None or now.read_calls != now.calls:  # later reads see what was edited on purpose
                now.read, now.read_gradient, now.read_norm = entry, now.gradient, now.norm
                now.read_calls = list(now.calls)
            now.edited = now.edited or entry.same is False
        elif entry.kind == "read":
            if any(s.calls for s in segments):
                after_zero = entry
            else:
                early = entry
        elif entry.kind == "zero" and now.calls:
            segments.append(_Segment())
    held = [s for s in segments if s.calls]
    used = [s for s in held if s.read is not None]
    last_backward = max(e.event for e in iteration if e.kind == "backward")
    if used:
        calls = [c for s in used for c in s.read_calls]
        parts = [s.read_gradient for s in used]
        total = (
            None if any(p is None for p in parts) else np.sum(np.stack([np.asarray(p, float) for p in parts]), axis=0)
        )
        last = used[-1].read
        assert last is not None
        norm = float(np.linalg.norm(total)) if total is not None else used[-1].read_norm
        unread = [c for s in held for c in s.calls if c not in calls]
        return Consumed(
            total,
            norm,
            "after",
            calls,
            unread,
            last,
            any(s.edited for s in used),
            max(last.event, last_backward),
            len(used),
        )
    every = [c for s in held for c in s.calls]
    if left_behind is not None:
        end = max(left_behind.event, last_backward)
        return Consumed(left_behind.gradient, left_behind.norm, "left_behind", every, [], left_behind, False, end)
    if after_zero is not None:
        template = held[-1].gradient
        zeros = None if template is None else np.zeros_like(np.asarray(template, float))
        return Consumed(zeros, 0.0, "zeroed", every, [], after_zero, False, max(after_zero.event, last_backward))
    if early is not None and not early.held:
        return Consumed(early.gradient, early.norm, "before", every, [], early, False, last_backward)
    return Consumed(
        held[-1].gradient,
        held[-1].norm,
        "unseen",
        held[-1].calls,
        [c for s in held[:-1] for c in s.calls],
        early,
        False,
        last_backward,
    )

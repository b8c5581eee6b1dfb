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
    """

    kind: Kind
    event: int
    call: int = -1
    gradient: np.ndarray | None = None
    norm: float = float("nan")
    same: bool | None = None
    held: bool = False
    unchanged: bool = False
    place: dict[str, Any] | None = None
    how: str = ""


@dataclass
class Consumed:
    """The gradient that an iteration's update used.

    when: 'after' backward (as it should be), 'before' (a stale read), 'zeroed' (read after zeroing), 'unseen'.
    calls: the backward calls whose gradient is in it. discarded: calls whose gradient was zeroed unread.
    """

    gradient: np.ndarray | None
    norm: float
    when: Literal["after", "before", "zeroed", "unseen"]
    calls: list[int]
    discarded: list[int]
    read: Entry | None
    edited: bool
    end_event: int


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


def split_iterations(history: list[Entry]) -> list[list[Entry]]:
    """Cut a history at the writes; stretches without a backward join the next one."""
    iterations: list[list[Entry]] = []
    current: list[Entry] = []
    for entry in history:
        if entry.kind == "write" and any(e.kind == "backward" for e in current):
            iterations.append(current)
            current = []
        current.append(entry)
    if any(e.kind == "backward" for e in current):
        iterations.append(current)
    return iterations


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
    for entry in iteration:
        now = segments[-1]
        if entry.kind == "backward":
            now.calls.append(entry.call)
            now.gradient, now.norm = entry.gradient, entry.norm
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
            total, norm, "after", calls, unread, last, any(s.edited for s in used), max(last.event, last_backward)
        )
    every = [c for s in held for c in s.calls]
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

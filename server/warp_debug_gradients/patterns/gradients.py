"""Gradients that are not this iteration's: never zeroed, read too early or too late, leaked through copies."""

from __future__ import annotations

from collections.abc import Iterator

from warp_debug_gradients.patterns.events import Event
from warp_debug_gradients.patterns.hits import Hit, Pattern, Spot
from warp_debug_gradients.patterns.story import Story, made, same_pass, within
from warp_debug_gradients.patterns.values import Array, TapeValue

NEVER_ZEROED = Pattern(
    "gradient never zeroed", "stale_gradient",
    "backward adds to what is there: from the second iteration on the gradient holds earlier ones as well",
    "several backward calls are meant to add up (mini-batches), or the array is new in every iteration",
    "Call tape.zero() after the gradient was used, or zero the .grad.",
)  # fmt: skip
EMPTY_ZERO = Pattern(
    "tape.zero() before backward", "stale_gradient",
    "a tape knows its arrays' gradients only after backward: zero() on a new tape zeroes nothing",
    "the gradient is zeroed elsewhere", "Call tape.zero() after the gradient was used.",
)  # fmt: skip
LEFTOVER = Pattern(
    "adjoint of an intermediate array left over", "stale_gradient",
    "only accumulated into, so no store consumes its adjoint: the next backward starts from what is left",
    "it is zeroed elsewhere, or stored to on the tape", "Zero it too (tape.zero() does), or make it anew.",
)  # fmt: skip
ZEROED_UNREAD = Pattern(
    "gradient read after zeroing", "stale_gradient",
    "the gradient was zeroed between backward and this read: it is 0",
    "the value is not used for the update", "Zero after the update.",
)  # fmt: skip
LIVE_VIEW = Pattern(
    "view of a gradient kept across zeroing", "stale_gradient",
    "on the CPU .grad.numpy() is the memory itself: zeroing the gradient zeroes this array, too",
    "on the GPU .numpy() is a copy", "Copy: .grad.numpy().copy().",
)  # fmt: skip
READ_EARLY = Pattern(
    "gradient read before backward", "stale_gradient",
    "what is read is the gradient of the iteration before (or zero)",
    "it is only printed, or read again after backward", "Read it after backward.",
)  # fmt: skip
COPIED = Pattern(
    "copy that carries a stale gradient", "stale_gradient",
    "wp.copy, clone and assign copy the gradient too: what is left in the source's is added to this backward's",
    "the source's gradient is zero when the copy is made", "Zero the source's gradient before the forward pass.",
)  # fmt: skip

EDITED = Pattern(
    "gradient changed between backward calls that add up", "stale_gradient",
    "what the earlier calls left is changed once more for each call that follows: the first ones count least",
    "a running average is meant", "Change it once, after the last backward call, or scale the losses.",
)  # fmt: skip
ADDED_TWICE = Pattern(
    "gradient added up that adds up by itself", "double_count",
    "the buffer holds the sum of the backward calls so far: adding up its readings counts the first ones again",
    "the buffer is zeroed between the readings", "Read it once, after the last backward call.",
)  # fmt: skip
LEFT_BEHIND = Pattern(
    "gradient of an array that is not used any more", "stale_gradient",
    "the variable got a new array, and the update goes on with the gradient of the old one",
    "the new array shares the gradient buffer of the old one",
    "Write the values into the same array (assign), or take the new array's gradient.",
)  # fmt: skip


def check(story: Story) -> Iterator[Hit]:
    """Follows each array's gradient through backward, zeroing and reads."""
    yield from _along(story)
    yield from _read_early(story)
    yield from _added_twice(story)
    yield from _left_behind(story)


def _along(story: Story) -> Iterator[Hit]:
    filled: dict[Array, Event] = {}  # gradient storage holds what this backward put there
    read_since: dict[Array, Event] = {}
    zeroed: dict[Array, Event] = {}  # zeroed since the last backward, unread
    doubtful: dict[Array, list[Hit]] = {}  # wrong if read before it is zeroed
    empty_zero: dict[TapeValue, Event] = {}
    stores: dict[tuple[TapeValue, Array], set[str]] = {}
    losses = {e.array.root for e in story.events if e.kind == "backward" and e.array is not None}
    losses |= {a.root for e in story.events if e.kind == "backward" for a, _ in e.seeds}
    read_at_all = {a.root for e in story.events for a in _reads(e)}
    for event in story.events:
        if event.kind == "launch" and event.tape is not None:
            for touch in event.touches:
                kinds = stores.setdefault((event.tape, touch.array.root), set())
                kinds |= {k for k in ("stored", "accumulated", "updated") if getattr(touch, k)}
        if event.kind == "copy" and event.tape is not None and event.array is not None and event.other is not None:
            stores.setdefault((event.tape, event.array.root), set()).add("stored")
            before = filled.get(event.other.root)
            if before is not None and event.array.requires_grad is not False and event.other.requires_grad:
                yield story.report(
                    COPIED, event, f"{event.other.label}.grad still holds what backward put there",
                    strong=event.other.root in read_at_all, array=event.array,
                    related=[before.spot("backward of the iteration before"), made(event.other)],
                )  # fmt: skip
        if event.kind == "backward" and event.subject is not None:
            for root, found in _backward(story, event, filled, read_since, empty_zero, stores, losses, read_at_all):
                doubtful.setdefault(root, []).append(found)
            for array in event.arrays:
                if array.requires_grad is not False:
                    filled[array.root] = event
                    read_since.pop(array.root, None)
                    zeroed.pop(array.root, None)
        if event.kind == "tape_zero" and not event.arrays and event.subject is not None:
            empty_zero[event.subject] = event
        for array in _zeroes(event):
            doubtful.pop(array.root, None)
            if filled.pop(array.root, None) is not None and array.root not in read_since:
                zeroed[array.root] = event
        if _reads(event):  # an update: what was left in intermediate arrays is in it
            for root in [r for r in doubtful if r not in read_at_all]:
                yield from doubtful.pop(root)
        for array in _reads(event):
            yield from doubtful.pop(array.root, [])
            zero = zeroed.get(array.root)
            if zero is not None and (zero.visit, zero.loops) == (event.visit, event.loops):
                yield story.report(ZEROED_UNREAD, zero, f"{array.label}.grad is zeroed here and read in line {event.line}",
                                   strong=True, array=array, related=[event.spot("read here")])  # fmt: skip
            read_since[array.root] = event
            zeroed.pop(array.root, None)
        if event.kind == "host_use" and event.what == "zeroed" and event.array is not None:
            root = event.array.root
            if root not in filled and root in read_at_all:
                zero = _last_zero(story, root, event.order)
                where = zero or event
                yield story.report(LIVE_VIEW, where, f"the view of {event.array.label}.grad is used in line {event.line}",
                                   strong=(where.visit, where.loops) == (event.visit, event.loops), array=event.array,
                                   related=[event.spot("used here")])  # fmt: skip


def _backward(
    story: Story,
    event: Event,
    filled: dict[Array, Event],
    read_since: dict[Array, Event],
    empty_zero: dict[TapeValue, Event],
    stores: dict[tuple[TapeValue, Array], set[str]],
    losses: set[Array],
    read_at_all: set[Array],
) -> Iterator[tuple[Array, Hit]]:
    """What is left in gradients when backward is called again."""
    assert event.subject is not None
    seen: set[Array] = set()
    for array in event.arrays:
        root = array.root
        before = filled.get(root)
        if before is None or root in seen or root in losses or array.requires_grad is False:
            continue
        if before.subject is event.subject and before.order > (_entered(story, event) or -1):
            continue  # the same recording, backward twice: another pattern
        if _meant_to_add_up(story, root, before, event):
            edit = _edited(story, root, before, event)
            if edit is not None:
                yield root, story.report(
                    EDITED, edit, f"{array.label}.grad holds what earlier backward calls of the iteration left", strong=True,
                    array=array, related=[event.spot("backward"), before.spot("backward before")],
                )  # fmt: skip
            continue
        seen.add(root)
        kinds = stores.get((event.subject, root), set())
        if root in read_since and (not kinds or kinds == {"accumulated"} or root in read_at_all):
            empty = empty_zero.get(event.subject)
            where, pattern = (empty, EMPTY_ZERO) if empty is not None else (event, NEVER_ZEROED)
            yield root, story.report(
                pattern, where, f"{array.label}.grad is used in line {read_since[root].line} and not zeroed",
                strong=array.requires_grad is True, array=array,
                related=[event.spot("backward"), *_opened(story, event), read_since[root].spot("used here")],
            )  # fmt: skip
        elif kinds == {"accumulated"} and array.requires_grad is True and root not in read_at_all:
            consumed = [a for a in event.arrays if a.root in read_at_all]
            again = any(a.root in read_since or a.root not in filled for a in consumed)
            if again:
                yield root, story.report(
                    LEFTOVER, event, f"{array.label} is only accumulated into", strong=True, array=array,
                    related=[made(array), *_opened(story, event)],
                )  # fmt: skip


def _meant_to_add_up(story: Story, root: Array, first: Event, second: Event) -> bool:
    """Whether a loop around the one that calls backward zeroes the gradient: these calls are parts of one iteration."""
    zeroings = [e for e in story.events if e.loops and any(a.root is root for a in _zeroes(e))]
    return any(
        len(z.loops) < len(second.loops) and within(first, z.loops) and within(second, z.loops)
        and first.visit[: len(z.loops)] == second.visit[: len(z.loops)]
        for z in zeroings
    )  # fmt: skip


def _edited(story: Story, root: Array, first: Event, second: Event) -> Event | None:
    """What writes to the gradient between two backward calls, and reads it."""
    for event in story.events[first.order : second.order]:
        written = event.kind == "seed_write" or (event.kind == "host_write" and event.of_grad)
        if written and event.array is not None and event.array.root is root and event.what != "new values":
            return event
    return None


def _opened(story: Story, backward: Event) -> list[Spot]:
    """Where the tape of a backward call was recorded."""
    found = [e for e in story.events[: backward.order] if e.kind == "tape_enter" and e.subject is backward.subject]
    return [found[-1].spot("the tape")] if found else []


def _entered(story: Story, backward: Event) -> int | None:
    found = [
        e.order for e in story.events[: backward.order] if e.kind == "tape_enter" and e.subject is backward.subject
    ]
    return found[-1] if found else None


def _last_zero(story: Story, root: Array, order: int) -> Event | None:
    for event in reversed(story.events[:order]):
        if any(a.root is root for a in _zeroes(event)):
            return event
    return None


def _reads(event: Event) -> list[Array]:
    """The arrays whose gradient an event reads."""
    if event.kind == "host_read" and event.of_grad and event.array is not None:
        return [event.array]
    if event.kind in ("launch", "step") and event.tape is None:
        return event.grads
    return event.grads if event.kind == "launch" else []


def _zeroes(event: Event) -> list[Array]:
    """The arrays whose gradient an event zeroes."""
    if event.kind == "grad_zero" and event.array is not None:
        return [event.array]
    return event.arrays if event.kind in ("tape_zero", "tape_reset") else []


def _read_early(story: Story) -> Iterator[Hit]:
    """A copy of the gradient taken in the same pass of the loop as backward, but before it, and none after it."""
    said: set[int] = set()
    backwards = [e for e in story.events if e.kind == "backward"]
    for event in story.events:
        if event.kind != "host_read" or not event.of_grad or event.array is None or not event.loops:
            continue
        root = event.array.root
        mine = [
            b for b in backwards
            if same_pass(b, event) and any(a.root is root for a in b.arrays)
        ]  # fmt: skip
        if not mine or any(b.order < event.order for b in mine) or id(event.node) in said:
            continue
        later = [
            e for e in story.events[mine[0].order :]
            if (root in [a.root for a in _reads(e)] or (e.kind == "host_use" and e.array and e.array.root is root))
            and same_pass(e, event)
        ]  # fmt: skip
        if not later:
            said.add(id(event.node))
            yield story.report(READ_EARLY, event, f"{event.array.label}.grad is read here, backward is in line {mine[0].line}",
                               strong=True, array=event.array, related=[mine[0].spot("backward")])  # fmt: skip


def _added_twice(story: Story) -> Iterator[Hit]:
    """Readings of one buffer that are added up on the host while the buffer itself is not zeroed in between."""
    last: dict[int, Event] = {}
    said: set[int] = set()
    for event in (e for e in story.events if e.kind == "host_add"):
        before, last[id(event.node)] = last.get(id(event.node)), event
        if before is None or before.loops != event.loops or before.visit[:-1] != event.visit[:-1]:
            continue
        between = story.events[before.order : event.order]
        for root in event.arrays:
            calls = [e for e in between if e.kind == "backward" and any(a.root is root for a in e.arrays)]
            zeroed = any(a.root is root for e in between for a in _zeroes(e))
            at_all = any(a.root is root for e in story.events for a in _zeroes(e))  # else it is never zeroed
            if calls and at_all and not zeroed and id(event.node) not in said:
                said.add(id(event.node))
                read = [story.events[n] for n in event.reads if story.events[n].kind == "host_read"]
                yield story.report(
                    ADDED_TWICE, event, f"{root.label}.grad is not zeroed between the readings", strong=True, array=root,
                    related=[*(r.spot("read here") for r in read[-1:]), calls[-1].spot("backward")],
                )  # fmt: skip


def _left_behind(story: Story) -> Iterator[Hit]:
    """The gradient of an array of an earlier pass, where this pass ran backward on another one of the same name."""
    backwards: list[Event] = []
    said: set[int] = set()
    for event in story.events:
        if event.kind == "backward":
            backwards.append(event)
        if event.kind not in ("step", "host_read") or not event.loops or id(event.node) in said:
            continue
        mine = [b for b in backwards if same_pass(b, event)]
        new = [a for b in mine for a in b.arrays]
        for array in _reads(event):
            named = array.root.name and any(a.root.name == array.root.name and a.requires_grad for a in new)
            known = any(a.root is array.root for b in backwards if b not in mine for a in b.arrays)
            if named and known and not any(a.root is array.root for a in new):
                said.add(id(event.node))
                yield story.report(
                    LEFT_BEHIND, event, f"backward of line {mine[-1].line} fills another array's gradient", strong=True,
                    array=array, related=[made(array.root), mine[-1].spot("backward")],
                )  # fmt: skip

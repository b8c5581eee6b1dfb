"""Gradients that are not this iteration's: never zeroed, read too early or too late, leaked through copies."""

from __future__ import annotations

from collections.abc import Iterator

from warp_debug_gradients.patterns.events import Event
from warp_debug_gradients.patterns.hits import Hit, Pattern, Spot
from warp_debug_gradients.patterns.story import Story, made
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


def check(story: Story) -> Iterator[Hit]:
    """Follows each array's gradient through backward, zeroing and reads."""
    yield from _along(story)
    yield from _read_early(story)


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
            if (b.loops[: len(event.loops)], b.visit[: len(event.visit)]) == (event.loops, event.visit)
            and any(a.root is root for a in b.arrays)
        ]  # fmt: skip
        if not mine or any(b.order < event.order for b in mine) or id(event.node) in said:
            continue
        later = [
            e for e in story.events[mine[0].order :]
            if (root in [a.root for a in _reads(e)] or (e.kind == "host_use" and e.array and e.array.root is root))
            and (e.loops[: len(event.loops)], e.visit[: len(event.visit)]) == (event.loops, event.visit)
        ]  # fmt: skip
        if not later:
            said.add(id(event.node))
            yield story.report(READ_EARLY, event, f"{event.array.label}.grad is read here, backward is in line {mine[0].line}",
                               strong=True, array=event.array, related=[mine[0].spot("backward")])  # fmt: skip

"""Adjoints that are handed from one tape to the one before it, and those that are forgotten."""

from __future__ import annotations

from collections.abc import Iterator

from warp_debug_gradients.patterns.events import Event
from warp_debug_gradients.patterns.hits import Hit, Pattern
from warp_debug_gradients.patterns.story import Story, made, same_pass, writes
from warp_debug_gradients.patterns.values import Array, GradOf, TapeValue

HALF_HANDED = Pattern(
    "part of a state's adjoint handed on", "truncation",
    "the tape before is seeded with the adjoint of one array of the state, that of another one is dropped",
    "the loss does not depend on the other array through this tape",
    "Seed backward with the adjoints of all arrays that carry the state.",
)  # fmt: skip


def check(story: Story) -> Iterator[Hit]:
    """Backward calls that are seeded with the gradient of what an earlier call's tape began with."""
    if not any(e.seeds for e in story.events):
        return
    inputs = {tape: set(_loaded(story, tape)) for tape in {e.tape for e in story.events if e.tape is not None}}
    written = {a.root for e in story.events if e.tape is not None for a, _ in writes(e)}
    by_hand = any(e.kind == "seed_write" and e.array is not None and e.array.root in written for e in story.events)
    known = {_source(seed) for e in story.events for _, seed in e.seeds} | {
        a.root for e in story.events for a in e.grads
    }
    known |= {e.array.gradient_of.root for e in story.events if e.array is not None and e.array.gradient_of is not None}
    known |= {e.array.root for e in story.events if e.kind == "host_read" and e.of_grad and e.array is not None}
    said: set[int] = set()
    for number, event in enumerate(story.events):
        if event.kind != "backward" or not event.seeds or by_hand or id(event.node) in said:
            continue
        handed = {root for _, seed in event.seeds if (root := _source(seed)) is not None}
        before = next(
            (b for b in reversed(story.events[:number])
             if b.kind == "backward" and b.subject is not event.subject and b.subject in inputs
             and handed and handed <= inputs[b.subject]),
            None,
        )  # fmt: skip
        if before is None or before.subject is None:
            continue
        dropped = [a for a in inputs[before.subject] if a not in known and a.requires_grad is True]
        for array in sorted(dropped, key=lambda a: a.line)[:1]:
            said.add(id(event.node))
            yield story.report(
                HALF_HANDED, event, f"the adjoint of {array.label} goes nowhere", strong=True, array=array,
                related=[made(array), before.spot("backward that leaves it")],
            )  # fmt: skip


def _source(seed: object) -> Array | None:
    """The array whose gradient a seed is."""
    if isinstance(seed, GradOf):
        return seed.array.root
    return seed.gradient_of.root if isinstance(seed, Array) and seed.gradient_of is not None else None


def _loaded(story: Story, tape: TapeValue) -> Iterator[Array]:
    """What a tape begins with: read by its launches, not written on it, and given its values in the same pass."""
    mine = [e for e in story.events if e.tape is tape]
    written = {a.root for e in mine for a, _ in writes(e)} | {
        e.array.root for e in mine if e.kind == "alloc" and e.array
    }
    enter = next((e for e in story.events if e.kind == "tape_enter" and e.subject is tape), None)
    read = {t.array.root for e in mine if e.kind == "launch" for t in e.touches if t.loaded} - written
    if enter is not None and enter.loops:
        yield from (a for a in read if _given_here(story, a, enter))


def _given_here(story: Story, array: Array, enter: Event) -> bool:
    return any(
        same_pass(e, enter)
        for e in story.events[: enter.order]
        if (e.kind == "alloc" and e.array is array) or any(a.root is array for a, _ in writes(e))
    )

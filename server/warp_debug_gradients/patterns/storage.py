"""Arrays on the path that have no gradient storage, or not the one that was meant."""

from __future__ import annotations

from collections.abc import Iterator

from warp_debug_gradients.patterns.events import Event
from warp_debug_gradients.patterns.hits import Hit, Pattern, hit
from warp_debug_gradients.patterns.story import Story, made
from warp_debug_gradients.patterns.values import Array, TapeValue

MISSING = Pattern(
    "array without requires_grad on the path", "missing_requires_grad",
    "what is written to it depends on an array with gradients and is read again: the chain of derivatives ends here",
    "no derivative is wanted through it (a mask, a count, a deliberate detach)",
    "Make it with requires_grad=True.",
)  # fmt: skip
LATE = Pattern(
    "requires_grad switched on late", "missing_requires_grad",
    "a view or struct that took the array before has no gradient storage: what goes through it gets none",
    "nothing on the tape goes through that view or struct",
    "Ask for requires_grad when the array is made.",
)  # fmt: skip


def check(story: Story) -> Iterator[Hit]:
    """Severed chains, and storage that came too late."""
    yield from _severed(story)
    yield from _late(story)


def _severed(story: Story) -> Iterator[Hit]:
    severed: dict[tuple[TapeValue, Array], tuple[Event, Array]] = {}
    influenced: set[tuple[TapeValue, Array]] = set()
    said: set[tuple[int, int]] = set()

    def lost(event: Event, tape: TapeValue, array: Array) -> Iterator[Hit]:
        writer, victim = severed[tape, array.root]
        key = (id(victim.source), victim.line)
        if key not in said:
            said.add(key)
            detail = f"{victim.label}: written by {writer.what} (line {writer.line}), read again in line {event.line}"
            yield hit(
                MISSING, "strong", victim.source, victim.node, detail, variable=victim.name or None,
                related=[writer.spot(f"written by {writer.what}"), event.spot("read here")],
            )  # fmt: skip

    for event in story.events:
        tape = event.tape
        if event.kind == "backward" and event.subject and event.array and (event.subject, event.array.root) in severed:
            yield from lost(event, event.subject, event.array)
        if tape is None or not event.recorded:
            continue
        if event.kind == "launch":
            for touch in event.touches:
                if not touch.written:
                    continue
                on_path = touch.array.requires_grad is not False and not touch.array.integer
                for source in touch.from_arrays:
                    key = (tape, source.root)
                    if key in severed and (on_path or (tape, touch.array.root) in severed):
                        yield from lost(event, tape, source)
            for touch in event.touches:
                carriers = [
                    a for a in touch.from_arrays
                    if (a.requires_grad is True or (tape, a.root) in influenced) and a.root is not touch.array.root
                ]  # fmt: skip
                if touch.written and carriers and not touch.array.integer:
                    influenced.add((tape, touch.array.root))
                    if touch.array.requires_grad is False:
                        severed.setdefault((tape, touch.array.root), (event, touch.array))
        elif event.kind == "copy" and event.array is not None and event.other is not None:
            cut = event.other.requires_grad is True and event.array.requires_grad is False
            if cut and not event.array.integer:
                severed.setdefault((tape, event.array.root), (event, event.array))


def _late(story: Story) -> Iterator[Hit]:
    switched: dict[Array, Event] = {}
    taken: dict[Array, Event] = {}
    said: set[int] = set()
    for event in story.events:
        if event.kind == "struct_take" and event.array is not None and event.what == "False":
            taken[event.array.root] = event
        if event.kind == "requires_grad" and event.array is not None and event.what.endswith("True"):
            switched[event.array.root] = event
        if event.kind != "launch" or event.tape is None:
            continue
        for touch in event.touches:
            root = touch.array.root
            switch = switched.get(root)
            if switch is None or id(switch.node) in said:
                continue
            view = touch.array is not root and touch.array.requires_grad is False
            struct = "." in touch.path and root in taken and taken[root].order < switch.order
            if view or struct:
                said.add(id(switch.node))
                took = made(touch.array) if view else taken[root].spot("taken by the struct here")
                detail = f"{touch.array.label} was taken before {root.label} got gradient storage"
                yield story.report(LATE, switch, detail, strong=True, array=root,
                                   related=[took, event.spot("used here")])  # fmt: skip

"""A buffer that is accumulated into, and cleared inside the tape by something that the tape does not record."""

from __future__ import annotations

from collections.abc import Iterator

from warp_debug_gradients.patterns.events import Event
from warp_debug_gradients.patterns.hits import Hit, Pattern
from warp_debug_gradients.patterns.story import Story, made
from warp_debug_gradients.patterns.values import Array, TapeValue

RESET = Pattern(
    "accumulator reset inside the tape", "accumulator_reset",
    "zero_/fill_/assign record nothing, so the buffer's adjoint is not reset: every earlier accumulation sees the "
    "adjoints of all later steps",
    "it is cleared once, before the first accumulation, or a plain store clears it on the tape",
    "Clear it with a kernel, or use a new buffer a step.",
)  # fmt: skip


def check(story: Story) -> Iterator[Hit]:
    """Accumulate, reset, accumulate again, under one tape."""
    accumulated: dict[tuple[TapeValue, Array], Event] = {}
    cleared: dict[tuple[TapeValue, Array], Event] = {}
    for event in story.events:
        if event.kind == "tape_reset" and event.subject:
            for book in (accumulated, cleared):
                for key in [k for k in book if k[0] is event.subject]:
                    del book[key]
        if event.tape is None:
            continue
        if event.kind == "reset" and event.array is not None:
            key = (event.tape, event.array.root)
            if key in accumulated and event.array.requires_grad is not False:
                cleared[key] = event
        if event.kind != "launch":
            continue
        for touch in event.touches:
            key = (event.tape, touch.array.root)
            if touch.stored:
                accumulated.pop(key, None)
                cleared.pop(key, None)
            elif touch.accumulated:
                reset = cleared.pop(key, None)
                if reset is not None:
                    array = touch.array
                    yield story.report(
                        RESET, reset, f"{array.label} is accumulated into before and after {reset.what}",
                        strong=array.requires_grad is True, array=array,
                        related=[event.spot(f"accumulated by {event.what}"), made(array)],
                    )  # fmt: skip
                accumulated[key] = event

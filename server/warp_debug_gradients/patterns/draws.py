"""Random numbers that are not pinned: the objective changes between evaluations."""

from __future__ import annotations

from collections.abc import Iterator

from warp_debug_gradients.patterns.hits import Hit, Pattern
from warp_debug_gradients.patterns.story import Story

UNPINNED = Pattern(
    "random draw without a seed", "stochastic_forward",
    "the objective is another one in every run: differences between two evaluations are noise",
    "the draw is made once, before training (gradients are right for the numbers drawn)",
    "Seed the generator, or draw the numbers once.",
)  # fmt: skip


def check(story: Story) -> Iterator[Hit]:
    """Draws inside a tape or the loop around one; generators made without a seed."""
    if not story.tapes:
        return
    seeded = any(e.kind == "random" and e.what == "seeded" for e in story.events)
    loops = {loop for e in story.events if e.kind == "tape_enter" for loop in e.loops}
    for event in story.events:
        if event.kind != "random" or event.what == "seeded":
            continue
        drawn = event.what.startswith("drawn:")
        inside = event.tape is not None or bool(loops & set(event.loops))
        clock = event.what == "drawn:the clock"
        if (drawn and inside and (clock or not seeded)) or (not drawn and not seeded):
            what = event.what.partition(":")[2] if drawn else "a generator without a seed"
            yield story.report(UNPINNED, event, what, strong=False)

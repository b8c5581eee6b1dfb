"""What backward is seeded with, against the objective that is reported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from warp_debug_gradients.patterns.events import Event
from warp_debug_gradients.patterns.hits import Hit, Pattern
from warp_debug_gradients.patterns.story import Story, made, writes
from warp_debug_gradients.patterns.values import Array

SUM_FOR_MEAN = Pattern(
    "seed of ones for a mean", "seed_mismatch",
    "ones give the gradient of the sum: N times that of the mean that is reported",
    "the sum is what is optimised", "Seed with 1/N.",
)  # fmt: skip
TWO_SEEDS = Pattern(
    "loss and seeds together", "seed_mismatch",
    "backward adds the seeds to the loss: its gradient is that of the two together",
    "the objective is the loss plus what the seeds weigh", "Give backward one of them.",
)  # fmt: skip
CONSUMED = Pattern(
    "seed array that backward consumes", "seed_mismatch",
    "the seeded array has no gradient storage, so backward works in the seed array itself and zeroes it: the next "
    "call starts from zeros",
    "backward is called once, or the seed is filled anew before each call",
    "Make the seeded array with requires_grad=True, or a new seed in every iteration.",
)  # fmt: skip
NO_SEED = Pattern(
    "backward without a seed", "seed_mismatch",
    "backward() starts from what is in the gradients: zeros give zeros, without a message",
    "a .grad was filled before", "Pass the loss, or grads={array: seed}.",
)  # fmt: skip

OLD_SEED = Pattern(
    "seed from before the forward pass", "seed_mismatch",
    "the seed is computed from the array that is seeded, before the tape computes that array anew",
    "the array holds the same values again", "Compute the seed after the forward pass.",
)  # fmt: skip


def check(story: Story) -> Iterator[Hit]:
    """Every backward call's seeds."""
    means = [(a.root, e) for e in story.events if e.kind == "reduced" and e.what == "mean" for a in e.arrays]
    filled = any(e.kind == "seed_write" or (e.kind == "launch" and e.grads) for e in story.events)
    yield from _old_seeds(story)
    for event in story.events:
        if event.kind != "backward":
            continue
        if event.what == "bare" and not filled:
            yield story.report(NO_SEED, event, "no loss, no grads, and no gradient is filled before", strong=True)
        if event.array is not None and event.seeds:
            yield story.report(
                TWO_SEEDS, event, f"{event.array.label} and grads={{...}}", strong=True, array=event.array
            )
        for array, seed in event.seeds:
            mean = next((e for root, e in means if root is array.root or root.name == array.name != ""), None)
            if mean is not None and _ones(seed):
                yield story.report(SUM_FOR_MEAN, event, f"the mean of {array.label} is taken in line {mean.line}",
                                   strong=True, array=array, related=[mean.spot("the mean")])  # fmt: skip
            outside = isinstance(seed, Array) and len(seed.visit) < len(event.visit)
            if outside and array.requires_grad is False:
                yield story.report(CONSUMED, event, f"{seed.label} is made once, {array.label} has no gradient storage",
                                   strong=True, array=array, related=[made(array), made(seed)])  # fmt: skip


def _ones(seed: Any) -> bool:
    return isinstance(seed, Array) and seed.maker in ("ones", "ones_like")


def _old_seeds(story: Story) -> Iterator[Hit]:
    """A seed that depends on the seeded array, as it was before the tape wrote it."""
    written: dict[Array, tuple[Event, set[Array]]] = {}  # the last event that wrote an array, and what it read
    for event in story.events:
        if event.kind == "alloc" and event.array is not None and event.array.made_from:
            written[event.array.root] = (event, {a.root for a in event.array.made_from})
        for array, touch in writes(event):
            sources = (
                touch.from_arrays if touch is not None else [*event.arrays, *([event.other] if event.other else [])]
            )
            written[array.root] = (event, {a.root for a in sources})
        for array, seed in event.seeds if event.kind == "backward" else []:
            made_by = written.get(seed.root) if isinstance(seed, Array) else None
            forward = written.get(array.root)
            if made_by is None or forward is None or array.root not in made_by[1]:
                continue
            if forward[0].tape is event.subject and made_by[0].order < forward[0].order:
                yield story.report(
                    OLD_SEED, made_by[0], f"{array.label} is computed in line {forward[0].line}, after this", strong=True,
                    array=array, related=[event.spot("backward"), forward[0].spot("computed here")],
                )  # fmt: skip

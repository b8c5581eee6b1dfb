"""What backward is seeded with, against the objective that is reported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from warp_debug_gradients.patterns.hits import Hit, Pattern
from warp_debug_gradients.patterns.story import Story, made
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


def check(story: Story) -> Iterator[Hit]:
    """Every backward call's seeds."""
    means = [(a.root, e) for e in story.events if e.kind == "reduced" and e.what == "mean" for a in e.arrays]
    filled = any(e.kind == "seed_write" or (e.kind == "launch" and e.grads) for e in story.events)
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

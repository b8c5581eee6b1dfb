"""What a backward pass is seeded with: arrays handed over, buffers set before, gradients an earlier pass left."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any, NamedTuple

import numpy as np

from .arrays import is_array, scalars
from .leaves import Leaf
from .registry import Registry
from .tapes import TapeState

MOST_LINKS = 64  # arrays whose last read gradient is remembered, and their largest size
LARGEST_LINK = 4_000_000


class SeedMemory:
    """Seed arrays handed to `backward(grads=...)`: a backward pass may consume them, and so spoil the next one.

    Where the output array has no gradient buffer, Warp makes the seed array itself that buffer, and the
    adjoint of the store sets it to zero: handed over again, it seeds nothing.
    """

    def __init__(self) -> None:
        self._handed: dict[int, np.ndarray] = {}
        self._left: dict[int, np.ndarray] = {}
        self._started: dict[int, np.ndarray] = {}  # by output: what its last backward pass was seeded with

    def again(self, outputs: list[Any], grads: Any, registry: Registry) -> set[int]:
        """The arrays (serials) whose last backward pass was seeded with what now seeds an output; remembers these seeds.

        It need not be the same output: where each batch has its own loss, a constant seed still stands in the one before.
        """
        seeds = {registry.serial(a): scalars(seed_of(a, grads)) for a in outputs if a.size <= LARGEST_LINK}
        found = {k for k, old in self._started.items() if any(np.array_equal(old, now) for now in seeds.values())}
        for serial, values in seeds.items():
            self._started.pop(serial, None)
            self._started[serial] = values
        while len(self._started) > MOST_LINKS:
            self._started.pop(next(iter(self._started)))
        return found

    def handed(self, grads: Any, registry: Registry) -> None:
        for seed in (grads or {}).values():
            if is_array(seed) and not self.is_spent(seed, registry):
                self._handed[registry.serial(seed)] = scalars(seed)

    def taken(self, grads: Any, registry: Registry) -> None:
        for seed in (grads or {}).values():
            if is_array(seed):
                self._left[registry.serial(seed)] = scalars(seed)

    def is_spent(self, seed: Any, registry: Registry) -> bool:
        """Handed over before, changed by that backward, and not refilled by the program since."""
        serial = registry.serial(seed)
        handed, left = self._handed.get(serial), self._left.get(serial)
        if handed is None or left is None or np.array_equal(handed, left):
            return False
        return bool(np.array_equal(scalars(seed), left))

    def consumed(self, grads: Any, registry: Registry) -> bool:
        return any(is_array(seed) and self.is_spent(seed, registry) for seed in (grads or {}).values())

    def meant(self, seed: Any, registry: Registry) -> np.ndarray:
        """What the program meant to seed with: the array as it was when first handed over."""
        return (
            self._handed.get(registry.serial(seed), scalars(seed)) if self.is_spent(seed, registry) else scalars(seed)
        )


def seeded_outputs(loss: Any, grads: Any, state: TapeState) -> list[Any]:
    """The arrays, other than the loss, that a backward starts from."""
    if grads:
        return [a for a in grads if is_array(a)]
    if is_array(loss):
        return []
    return [a for a in state.outputs.values() if a._grad is not None and np.any(scalars(a._grad))]


class ReadGradients:
    """What the program last read of each array's gradient: where it hands that on as a seed, tapes are chained by hand."""

    def __init__(self) -> None:
        self._values: dict[int, np.ndarray] = {}

    def note(self, owner: Any, registry: Registry) -> None:
        """A read of `owner`'s gradient, with what it holds now."""
        if owner._grad is None or owner.size > LARGEST_LINK:
            return
        serial = registry.serial(owner)
        self._values.pop(serial, None)
        self._values[serial] = scalars(owner._grad)
        if len(self._values) > MOST_LINKS:
            self._values.pop(next(iter(self._values)))

    def hold(self, values: np.ndarray) -> int | None:
        """The number of the array whose gradient was read as these values."""
        return next((k for k, seen in reversed(self._values.items()) if np.array_equal(seen, values)), None)


def seed_of(output: Any, grads: Any) -> Any:
    """The array that seeds an output: handed over, or its own gradient buffer (None where it has none)."""
    return next((g for a, g in (grads or {}).items() if a is output), output._grad)


class Origin(NamedTuple):
    """Where the seeds of a backward pass come from."""

    linked: bool  # one at least is a gradient that an earlier backward pass left: a chain of tapes, checkpointing
    carriers: list[Leaf]  # the leaves among those that left them
    stated: list[Any]  # outputs that start from a seed of another origin: terms of the objective


def origin(
    grads: Any,
    seeds: list[Any],
    leaves: Iterable[Leaf],
    read: ReadGradients | None = None,
    again: Container[int] = (),
) -> Origin:
    """Tells what an earlier backward pass left from what the program states. The program may have copied the gradient away
    and zeroed it since.

    again: arrays whose last backward pass had the same seed as one of these. What such an array holds is that seed, not a
    result of it.
    """
    leaves = [leaf for leaf in leaves if leaf.serial not in again]
    carriers: list[Leaf] = []
    stated: list[Any] = []
    linked = False
    for output in seeds:
        values = scalars(seed_of(output, grads))
        if not np.any(values):
            continue  # seeds nothing
        held = [leaf for leaf in leaves if leaf.gradient is not None and np.array_equal(leaf.gradient, values)]
        # Ones are what a loss starts from, and what is left at every sum that it goes through: no trace of a link.
        match = held[0] if held and not np.all(values == 1.0) else None
        if match is None:
            number = None if read is None else read.hold(values)
            if number is None or number in again:
                stated.append(output)
                continue
            match = next((leaf for leaf in leaves if leaf.serial == number), None)
        linked = True
        if match is not None:
            carriers.append(match)
    return Origin(linked, carriers, stated)

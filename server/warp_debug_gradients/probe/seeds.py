"""What a backward pass is seeded with: arrays handed over, buffers set before, gradients an earlier pass left."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .arrays import is_array, scalars
from .leaves import Leaf
from .registry import Registry
from .tapes import TapeState


class SeedMemory:
    """Seed arrays handed to `backward(grads=...)`: a backward pass may consume them, and so spoil the next one.

    Where the output array has no gradient buffer, Warp makes the seed array itself that buffer, and the
    adjoint of the store sets it to zero: handed over again, it seeds nothing.
    """

    def __init__(self) -> None:
        self._handed: dict[int, np.ndarray] = {}
        self._left: dict[int, np.ndarray] = {}

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


def carriers(grads: Any, seeds: list[Any], leaves: Iterable[Leaf]) -> list[Leaf]:
    """The leaves whose gradients, left by earlier backward passes, are the seeds (a chain of tapes, checkpointing).

    Empty where any seed has another origin.
    """
    leaves, found = list(leaves), []
    for output in seeds:
        seed = next((g for a, g in (grads or {}).items() if a is output), output._grad)
        values = scalars(seed)
        matches = (leaf for leaf in leaves if leaf.gradient is not None and np.array_equal(leaf.gradient, values))
        match = next(matches, None) if np.any(values) else None
        if match is None:
            return []
        found.append(match)
    return found

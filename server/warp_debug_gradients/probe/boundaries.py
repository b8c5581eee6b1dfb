"""Backwards segment by segment: a tape that ends in the state with which the tape of the backward call before began.

That is checkpointing by hand: the segment behind begins in a copy of what this one makes again, and the adjoint of that
copy has to be handed to this one. Whether it is, and how, is seen here; whether it has to be, differences tell.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from .arrays import checksum, describe_dtype, host, is_differentiable, scalars
from .leaves import Leaf
from .registry import Registry
from .seeds import seed_of
from .tapes import TapeState

SAMPLED = 8  # values by which most arrays are told apart before their whole content is compared
MOST_BYTES = 64 << 20  # of contents that are compared in one backward call
ALIKE = (
    1e-4  # of the largest value: how far an array that is another's adjoint may be off (it may be in another precision)
)

How = Literal["seed", "product", "dropped", "nothing"]


class Joint(NamedTuple):
    """An array with which the tape of the call before began, and what of its adjoint is handed on.

    how: 'seed' (with backward, or in the buffer), 'product' (it is multiplied on the tape, a term of the loss), 'dropped',
    or 'nothing': there is no adjoint to hand on. norm: of the adjoint. ends: numbers of the arrays that this tape ends with.
    """

    leaf: Leaf
    how: How
    norm: float
    ends: list[int]


@dataclass
class _Begun:
    """What a tape began with. gradient: its adjoint, as backward left it. Shape (scalars,)."""

    leaf: Leaf
    content: int
    sample: bytes
    kind: tuple[Any, ...]
    gradient: np.ndarray | None


class Boundaries:
    """Remembers what the tape of the last backward call began with."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._begun: list[_Begun] = []

    def begun(self, leaves: Iterable[Leaf]) -> None:
        """The leaves of the backward call that ended just now."""
        self._begun = [
            _Begun(leaf, leaf.content, _sample(array), _kind(array), leaf.gradient)
            for leaf in leaves
            if leaf.content is not None and (array := leaf.array()) is not None and _is_telling(array)
        ]

    def joints(self, state: TapeState, grads: Any) -> list[Joint]:
        """The arrays of the call before that this tape, whose backward is about to run, ends with."""
        left, found = MOST_BYTES, []
        for begun in self._begun:
            alike = []
            for array in [*reversed(state.recent.values()), *state.leaves.values()]:
                if _kind(array) == begun.kind and array.capacity <= left and _sample(array) == begun.sample:
                    left -= array.capacity
                    if checksum(array) == begun.content:
                        alike.append(array)
            read = {id(array) for array in state.leaves.values()}
            if alike and not any(
                id(array) in read for array in alike
            ):  # else it is as it was: a node of multiple shooting
                how, norm = _handed(begun.gradient, alike, state, grads)
                found.append(Joint(begun.leaf, how, norm, [self._registry.serial(array) for array in alike]))
        return found


def _handed(adjoint: np.ndarray | None, ends: list[Any], state: TapeState, grads: Any) -> tuple[How, float]:
    """What is handed on of an adjoint, and its norm."""
    norm = float(np.linalg.norm(adjoint.astype(np.float64))) if adjoint is not None else 0.0
    if adjoint is None or norm == 0.0:
        return "nothing", 0.0
    seeds = [seed for end in ends if (seed := seed_of(end, grads)) is not None]
    if any(np.any(scalars(seed)) for seed in seeds):
        return "seed", norm
    read = [*state.constants.values(), *state.leaves.values()]
    if any(_is_adjoint(array, adjoint) for array in read):
        return "product", norm
    return "dropped", norm


def _is_adjoint(array: Any, adjoint: np.ndarray) -> bool:
    """Whether an array that the tape reads holds the adjoint."""
    fits = array.size <= adjoint.size and is_differentiable(array)
    values = scalars(array) if fits else np.zeros(0)
    if values.size != adjoint.size:
        return False
    return bool(np.allclose(values, adjoint, rtol=0.0, atol=ALIKE * float(np.abs(adjoint).max())))


def _kind(array: Any) -> tuple[Any, ...]:
    return (describe_dtype(array), tuple(array.shape))


def _sample(array: Any) -> bytes:
    flat = host(array).reshape(-1)
    return np.ascontiguousarray(flat[:: max(1, flat.size // SAMPLED)][:SAMPLED]).tobytes()


def _is_telling(array: Any) -> bool:
    """Whether the content is one that another array hardly has by chance: no constant, no whole number."""
    values = scalars(array)
    if values.size == 0 or not np.all(np.isfinite(values)):
        return False
    return bool(values[0] % 1.0) if values.size == 1 else bool(np.any(values != values[0]))

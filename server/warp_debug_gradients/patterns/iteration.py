"""Which passes of a loop are followed, and what its variable is in each of them."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warp_debug_gradients.patterns.values import Const, Host, Mapping, Sequence, Symbol

if TYPE_CHECKING:
    from warp_debug_gradients.patterns.rehearsal import Rehearsal

ALL = 4  # loops with so few passes are followed whole


@dataclass(eq=False)
class Range:
    """`range(...)`; None where a bound is not known."""

    start: int | None
    stop: int | None
    step: int | None

    @property
    def count(self) -> int | None:
        """How many numbers."""
        if self.start is None or self.stop is None or not self.step:
            return None
        return len(range(self.start, self.stop, self.step))


@dataclass(eq=False)
class Zip:
    """`zip(...)` and `enumerate(...)`."""

    parts: list[Any]


@dataclass(eq=False)
class Reversed:
    """`reversed(...)`."""

    inner: Any


def make_range(args: list[Any]) -> Range:
    """`range` of values."""
    numbers = [int(a.value) if isinstance(a, Const) and isinstance(a.value, (int, float)) else None for a in args]
    if len(numbers) == 1:
        return Range(0, numbers[0], 1)
    if len(numbers) == 2:
        return Range(numbers[0], numbers[1], 1)
    return Range(numbers[0], numbers[1], numbers[2]) if len(numbers) == 3 else Range(None, None, None)


def count(over: Any) -> int | None:
    """How many passes a loop over a value has, where it is known."""
    if isinstance(over, Range):
        return over.count
    if isinstance(over, Sequence):
        if over.template is not None:
            return over.length
        return None if over.open and not over.items else len(over.items)
    if isinstance(over, Zip):
        known = [c for c in map(count, over.parts) if c is not None]
        return min(known, default=None)
    if isinstance(over, Reversed):
        return count(over.inner)
    if isinstance(over, Mapping):
        return len(over.items)
    return None


def passes(over: Any) -> tuple[list[int], int | None]:
    """The passes that are followed, by number, and how many there are."""
    total = count(over)
    if total is None:
        return [0, 1], None
    return (list(range(total)) if total <= ALL else [0, 1, total - 1]), total


def elements(rehearsal: Rehearsal, over: Any, node: ast.AST, indices: list[Any] | None = None) -> list[Any]:
    """What the loop variable is in each pass that is followed."""
    chosen = passes(over)[0] if indices is None else indices
    return [_element(rehearsal, over, i, node) for i in chosen]


def _element(rehearsal: Rehearsal, over: Any, index: Any, node: ast.AST) -> Any:
    if not isinstance(index, int):
        return Host()
    if isinstance(over, Range):
        return Host() if over.start is None or over.step is None else Const(over.start + index * over.step)
    if isinstance(over, Sequence):
        found = over.get(index)
        return rehearsal.symbol("an element", node) if found is None else found
    if isinstance(over, Zip):
        return Sequence([_element(rehearsal, part, index, node) for part in over.parts])
    if isinstance(over, Reversed):
        total = count(over.inner)
        return Host() if total is None else _element(rehearsal, over.inner, total - 1 - index, node)
    if isinstance(over, Mapping):
        keys = list(over.items)
        return Const(keys[index]) if 0 <= index < len(keys) else Host()
    if isinstance(over, Symbol):
        return over.child(index)
    return Host()

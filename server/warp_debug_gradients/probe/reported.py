"""Is the array that is handed to backward only a part of the number that the program reads?

`total = voltage + temperature` on the tape, the host reads and prints `total`, and backward begins at `voltage`. What is
kept of a tape here are its launches that write a single scalar: few, and at its end.
"""

from __future__ import annotations

import ast
import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from .addends import addition
from .host_values import proportion
from .registry import Registry, root

MOST_KEPT = 64  # launches that write a scalar, the last ones of a tape
FLOATS = frozenset({"float16", "float32", "float64"})


@dataclass(frozen=True)
class Argument:
    """An array of such a launch."""

    label: str
    serial: int
    read: bool
    written: bool
    differentiable: bool


@dataclass(frozen=True)
class ScalarOp:
    """A launch that writes a single scalar."""

    event: int
    kernel: Any
    place: dict[str, Any] | None
    arguments: tuple[Argument, ...]


@dataclass(frozen=True)
class Sum:
    """A scalar with the seeded one as a summand."""

    serial: int
    place: dict[str, Any] | None
    label: str


@dataclass
class ScalarOps:
    """Those of one tape. readers: how often an operation on it reads each scalar."""

    kept: deque[ScalarOp] = field(default_factory=lambda: deque(maxlen=MOST_KEPT))
    readers: dict[int, int] = field(default_factory=dict)

    def note(
        self,
        event: int,
        kernel: Any,
        labelled: Iterable[tuple[str, Any, Any]],
        registry: Registry,
        place: dict[str, Any] | None,
    ) -> None:
        """A launch that writes a scalar. labelled: (label, array, access)."""
        found: list[Argument] = []
        for label, array, how in labelled:
            only_added = how is not None and how.usage[2]
            read, writes = how is None or (how.read and not only_added), how is None or how.written
            found.append(Argument(label, registry.serial(root(array)), read, writes, array._grad is not None))
        self.kept.append(ScalarOp(event, kernel, place, tuple(found)))

    def sums(self, seeded: int) -> list[Sum]:
        """The scalars that the seeded one (a number of the registry) is only added to, by what comes after it; none where
        anything else on the tape reads it."""
        if self.readers.get(seeded) != 1:
            return []
        found: list[Sum] = []
        known = {seeded}
        for op in self.kept:
            for source in [a for a in op.arguments if a.serial in known and a.read and not a.written]:
                target = next((a for a in op.arguments if a.written and a.serial not in known), None)
                if target is None or not _adds(op, source, target):
                    continue
                known.add(target.serial)
                others = any(
                    a.read and not a.written and a.differentiable and a.serial not in known
                    for other in self.kept
                    if any(w.serial == target.serial and w.written for w in other.arguments)
                    for a in other.arguments
                )
                if others or any(s.serial == source.serial for s in found):
                    found.append(Sum(target.serial, op.place, source.label))
        return found


def _adds(op: ScalarOp, source: Argument, target: Argument) -> bool:
    """Whether the launch only adds the one to the other, with weights that no gradient is asked of."""
    tree = getattr(op.kernel.adj, "tree", None)
    function = tree.body[0] if isinstance(tree, ast.Module) and tree.body else None
    weights = addition(function, source.label, target.label) if isinstance(function, ast.FunctionDef) else None
    trained = {a.label.partition(".")[0] for a in op.arguments if a.differentiable}  # of a struct: any of its arrays
    return weights is not None and not weights & trained


def is_scalar(array: Any) -> bool:
    """Whether an array is a single differentiable float."""
    return array.size == 1 and array._grad is not None and getattr(array.dtype, "__name__", "") in FLOATS


def sum_kind(found: Sum) -> tuple[Any, ...]:
    """What is the same of a sum in all iterations: its line, and which argument the loss is there."""
    place = found.place or {}
    return place.get("file"), place.get("line"), found.label


def compare_reported(checks: list[dict[str, Any]]) -> None:
    """Says of every measured sum whether its derivative is proportional to AD, over all parameters of its iteration.

    Takes the single differences out again that only this needs.
    """
    ordered = sorted((c for c in checks if "reported" in c), key=lambda c: c["iteration"])
    for _, group in groupby(ordered, key=lambda c: c["iteration"]):
        same = list(group)
        pairs = [tuple(p) for c in same for p in c["reported"].pop("pairs")]
        agreed = all(c["verdict"] == "agree" for c in same)
        row = proportion(pairs) if agreed and len(pairs) > 1 else None
        for check in same:
            check["reported"] |= row or {"proportional": None}
            if row and not math.isfinite(row["finite_difference"]):
                check["reported"]["proportional"] = None

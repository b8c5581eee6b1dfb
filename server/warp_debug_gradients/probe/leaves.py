"""Leaves of the tapes: arrays read and never written by a recording, the same through all iterations."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import names
from .arrays import describe_dtype, float_fields, float_parts, host, overlap
from .consumption import Entry
from .followed import Follower
from .names import Origins
from .registry import Registry, root
from .tapes import Tapes, TapeState


@dataclass
class Leaf:
    """An array that a tape reads and never wrote: a candidate parameter, the same through all iterations."""

    key: str
    name: str
    aliases: list[str]
    allocated: dict[str, Any] | None
    dtype: str
    shape: list[int]
    scalars: int
    device: str
    array: weakref.ref
    serial: int
    fields: list[tuple[str, int]] = field(default_factory=list)  # of structs: name and scalars of each float field
    gradient: np.ndarray | None = None  # what the last backward left
    emptied: np.ndarray | None = None  # what it was when the buffer was zeroed since
    edited: dict[str, Any] | None = None  # where something other than a backward pass last wrote to the buffer
    content: int | None = None
    history: list[Entry] = field(default_factory=list)
    follower: Follower = field(default_factory=Follower)
    uses: list[dict[str, Any]] = field(default_factory=list)  # one a backward call: serial, first use, last write
    orphan: bool = False  # its gradient is read, yet no tape reads it by this array
    read_itself: bool = False  # its gradient is read as this array's, not through another view of the memory
    stands_for: str | None = None  # key of the leaf through which this memory's gradient is read
    buffer: weakref.ref | None = None  # its array's gradient, as the last backward left it
    left: list[weakref.ref] = field(default_factory=list)  # those of the arrays that the variable held before
    resumed: int = 0  # backward calls followed by one whose tape ends in what this one began with
    carrier: bool = False  # its gradient seeds a later backward pass: a link of a chain of tapes, not a parameter

    def begins_segments(self, calls: int) -> bool:
        """Whether it holds the state with which a segment begins: most tapes end in what it held for the tape before.

        calls: how many backward calls there were. What is trained is changed by its gradient, not by an earlier segment.
        """
        followed = sum(use["call"] + 1 < calls for use in self.uses)
        return 0 < followed <= 2 * self.resumed

    def leave(self) -> None:
        """The variable is given a new array: the old one's gradient lives on where somebody kept it."""
        self.left = [buffer for buffer in [*self.left, self.buffer] if buffer is not None and buffer() is not None]
        self.buffer = None


class Leaves(dict[str, Leaf]):
    """The leaves by key."""

    def __init__(self, origins: Origins, registry: Registry, tapes: Tapes):
        super().__init__()
        self.origins, self.registry, self.tapes = origins, registry, tapes
        self.arguments: dict[str, Any] = {}  # of the callable that is the program (see callable_target)
        self.created_at: dict[int, int] = {}  # number -> event: a view may be younger than what it shows

    def matching(self, gradient: Any) -> list[Leaf]:
        """The leaves whose gradient buffer shares memory with `gradient`."""
        matches = []
        for leaf in self.values():
            array = leaf.array()
            if array is not None and array._grad is not None and overlap(array._grad, gradient):
                matches.append(leaf)
        return matches

    def left_with(self, gradient: Any) -> Leaf | None:
        """The leaf whose variable held the array of this gradient buffer before it was given a new one."""
        base = root(gradient)
        return next((leaf for leaf in self.values() if any(buffer() is base for buffer in leaf.left)), None)

    def find_names(self, arrays: list[Any], frame: Any) -> dict[int, list[str]]:
        """Names by id; a view that no variable holds (`weights.flatten()` in a call) is called after its base."""
        wanted = {id(each): each for array in arrays for each in (array, root(array))}
        found = names.find(wanted, self.origins.frames(frame), self.arguments)
        for array in arrays:
            base = root(array)
            if id(array) not in found and base is not array and id(base) in found and array.size == base.size:
                found[id(array)] = found[id(base)]
        return found

    def name(self, array: Any, found: list[str]) -> str:
        if found:
            return found[0]
        place = self.registry.allocated.get(self.registry.serial(array))
        return (names.assigned_name(*place) if place else None) or f"array of shape {tuple(array.shape)}"

    def use(self, array: Any, state: TapeState | None, found: list[str], call: int) -> str:
        """The key of a leaf, made on first sight; the same variable keeps its key when its array is rebuilt."""
        serial = self.registry.serial(array)
        base = root(array).ptr
        first_use, write = state.first_use.get(base, (-1, -1)) if state is not None else (-1, -1)
        if first_use < 0:
            write = self.tapes.last_write.get(base, -1)
        leaf = self._known(array, serial, found, call)
        if leaf is None:
            leaf = self.make(array, serial, found)
        write = max(write, self.created_at.get(serial, -1))
        touch = self.tapes.first_touch_of(array)
        leaf.uses.append(
            {"call": call, "serial": serial, "first_use": first_use, "last_write": write, "first_touch": touch}
        )
        return leaf.key

    def _known(self, array: Any, serial: int, found: list[str], call: int) -> Leaf | None:
        for leaf in self.values():
            if leaf.serial == serial:
                return leaf
        place = self._allocated(serial)
        shape = [int(n) for n in array.shape]
        for leaf in self.values():
            taken = bool(leaf.uses) and leaf.uses[-1]["call"] == call
            same_variable = leaf.allocated == place and (
                not found or leaf.name in found or leaf.name == self.name(array, found)
            )
            if same_variable and not taken and leaf.shape == shape and leaf.dtype == describe_dtype(array):
                leaf.leave()
                leaf.array, leaf.serial, leaf.gradient = weakref.ref(array), serial, None
                self.registry.own_gradient(array)
                return leaf
        return None

    def make(self, array: Any, serial: int, found: list[str]) -> Leaf:
        place, name = self._allocated(serial), self.name(array, found)
        base = f"{place['file']}:{place['line']}:{name}" if place else name
        leaf = Leaf(
            key=f"{base}#{sum(k.startswith(base + '#') for k in self)}",
            name=name,
            aliases=found,
            allocated=place,
            dtype=describe_dtype(array),
            shape=[int(n) for n in array.shape],
            scalars=sum(part.size for part in float_parts(host(array))),
            fields=float_fields(host(array)),
            device=str(array.device),
            array=weakref.ref(array),
            serial=serial,
        )
        self[leaf.key] = leaf
        self.registry.own_gradient(array)
        return leaf

    def _allocated(self, serial: int) -> dict[str, Any] | None:
        place = self.registry.allocated.get(serial)
        return {"file": place[0], "line": place[1]} if place else None

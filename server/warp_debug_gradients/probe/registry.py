"""Every array of the program has a number, an allocation line and, perhaps, a gradient buffer that we know again."""

from __future__ import annotations

import weakref
from bisect import bisect_right
from typing import Any, Callable, Iterator

from .arrays import arrays_in, extent, is_array
from .names import Origins

PLAIN = (float, int, bool, type(None))  # launch arguments that hold no array
SERIAL = "_warp_debug_gradients_serial"  # attribute on wp.array: dictionary look-ups by id() survive no reuse of memory


class Registry:
    """Numbers arrays in the order of their creation: the same array has the same number in every run."""

    def __init__(self, origins: Origins):
        self.origins = origins
        self.count = 0
        self.wanted: dict[int, weakref.ref | None] = {}  # arrays that this run will have to find again
        self.uses_cuda = False
        self.only_numbers = False  # an evaluation needs no names
        self.allocated: dict[int, tuple[str, int]] = {}
        self.bound: dict[int, tuple[str, int]] = {}  # of those that a function returns at once: the line that takes it
        self._gradients: dict[int, list[weakref.ref]] = {}  # first byte -> arrays whose gradient begins there

    def created(self, array: Any) -> int:
        """Number an array that was just made; returns its number."""
        serial = self.count
        self.count += 1
        array.__dict__[SERIAL] = serial
        if serial in self.wanted:
            self.wanted[serial] = weakref.ref(array)
        if self.only_numbers:
            return serial
        if array.device is not None and array.device.is_cuda:
            self.uses_cuda = True
        frame = self.origins.frame(2)
        if frame is not None:
            self.allocated[serial] = (frame.f_code.co_filename, frame.f_lineno)
            taker = self.origins.taker(frame)
            if taker is not None:
                self.bound[serial] = (taker.f_code.co_filename, taker.f_lineno)
        if array._grad is not None:
            self.own_gradient(array)
        return serial

    def own_gradient(self, array: Any) -> None:
        """Remember that `array.grad`'s memory belongs to `array`."""
        gradient = array._grad
        if gradient is not None and gradient.ptr is not None:
            known = self._gradients.get(gradient.ptr, ())
            others = [owner for owner in known if owner() is not None and owner() is not array]
            self._gradients[gradient.ptr] = [*others, weakref.ref(array)]

    def find(self, serial: int) -> Any | None:
        """The living array with a wanted number."""
        reference = self.wanted.get(serial)
        return reference() if reference is not None else None

    def serial(self, array: Any) -> int:
        """The array's number; -1 for one that was made before the hooks or behind them."""
        return array.__dict__.get(SERIAL, -1)

    def owner_of_gradient(self, array: Any) -> Any | None:
        """The array whose gradient buffer `array` is, or views a part of; None if it is no gradient.

        A view's gradient may begin where that of its base does: the array that holds this very buffer comes first.
        """
        link: Any = array
        while link is not None and is_array(link):
            known = self._gradients.get(link.ptr)
            if known is not None:
                owners = [owner for owner in (each() for each in known) if owner is not None]
                owners = [owner for owner in owners if owner._grad is not None and owner._grad.ptr == link.ptr]
                if owners:
                    return next((owner for owner in owners if owner._grad is link), owners[-1])
            link = link._ref
        return None

    def might_be_gradient(self, array: Any) -> bool:
        """A cheap first look for the hot path of launches."""
        return array.ptr in self._gradients or (array._ref is not None and self.owner_of_gradient(array) is not None)


def root(array: Any) -> Any:
    """The array that owns the memory a view looks into."""
    base = array._ref
    while base is not None and is_array(base):
        array, base = base, base._ref
    return array


class Ranges:
    """A set of byte addresses as disjoint, sorted intervals."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, low: int, high: int) -> None:
        if low >= high:
            return
        starts, ends = self._starts, self._ends
        first = bisect_right(ends, low - 1)
        last = first
        while last < len(starts) and starts[last] <= high:
            low, high = min(low, starts[last]), max(high, ends[last])
            last += 1
        starts[first:last] = [low]
        ends[first:last] = [high]

    def missing(self, low: int, high: int) -> list[tuple[int, int]]:
        """The parts of [low, high) that are not in the set."""
        found, i = [], bisect_right(self._ends, low)
        while low < high and i < len(self._starts) and self._starts[i] < high:
            if low < self._starts[i]:
                found.append((low, self._starts[i]))
            low = self._ends[i]
            i += 1
        return [*found, (low, high)] if low < high else found

    def covers(self, low: int, high: int) -> bool:
        """Whether every byte of [low, high) is in the set."""
        return not self.missing(low, high)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """The intervals, in order."""
        return iter(zip(self._starts, self._ends, strict=True))

    def touches(self, low: int, high: int) -> bool:
        """Whether any byte of [low, high) is in the set."""
        i = bisect_right(self._ends, low)
        return i < len(self._starts) and self._starts[i] < high and low < high


def _touches(how: Any) -> bool:
    """Whether a launch reads or writes an argument of this access; None: nobody knows."""
    return how is None or how.read or how.written


class LaunchArguments:
    """Which arrays a launch reads and writes, from the kernel's own source (struct fields too)."""

    def __init__(self, argument_access: Callable[[Any], dict[str, Any]]):
        self._access = argument_access
        self._kernels: dict[int, tuple[Any, list[tuple[str, Any, bool]], dict[str, Any]]] = {}

    def _described(self, kernel: Any) -> tuple[Any, list[tuple[str, Any, bool]], dict[str, Any]]:
        """(kernel, [(label, access of the argument as a whole, whether it is touched)], access of each field by path)."""
        known = self._kernels.get(id(kernel))
        if known is None:
            try:
                access = self._access(kernel)
            except Exception:  # an access that cannot be derived counts as read and written
                access = {}
            whole = [(a.label, access.get(a.label)) for a in kernel.adj.args]
            known = (kernel, [(label, how, _touches(how)) for label, how in whole], access)
            self._kernels[id(kernel)] = known
        return known

    def labelled(self, kernel: Any, inputs: Any, outputs: Any) -> list[tuple[str, Any, Any]]:
        """[(label, array, access)] of the arguments of one launch; access is None where it could not be derived."""
        _, described, access = self._described(kernel)
        found = []
        for (label, whole, touched), value in zip(described, (*inputs, *outputs), strict=False):  # be quick
            if is_array(value):
                if touched:
                    found.append((label, value, whole))
            elif value.__class__ not in PLAIN:
                for path, array in arrays_in(value):
                    full = f"{label}.{path}" if path else label
                    how = access.get(full)
                    if _touches(how):
                        found.append((full, array, how))
        return found

    def of(self, kernel: Any, inputs: Any, outputs: Any) -> list[tuple[Any, bool, bool]]:
        """[(array, read, written)] for the arguments of one launch."""
        return [
            (array, how is None or how.read, how is None or how.written)
            for _, array, how in self.labelled(kernel, inputs, outputs)
        ]


def span(array: Any) -> tuple[int, int]:
    """The array's bytes, fast for an array that owns its memory."""
    if array._ref is None and array.is_contiguous:
        return array.ptr, array.ptr + array.capacity
    return extent(array)

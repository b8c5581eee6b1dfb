"""What the program does to tapes and arrays, in order, as far as its source says: the rehearsal's record."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from warp_debug_gradients.patterns.hits import Spot
from warp_debug_gradients.patterns.kernels import Kernel
from warp_debug_gradients.patterns.source import SourceFile
from warp_debug_gradients.patterns.values import Array, TapeValue


@dataclass
class Touch:
    """What a launch does to one array of its arguments."""

    array: Array
    path: str
    loaded: bool
    needed_for: list[Array]  # arrays whose adjoint reads this one's values again
    stored: bool
    accumulated: bool
    updated: bool
    from_arrays: list[Array]  # what is written depends differentiably on these
    load_slots: list[tuple[object, ...]] = field(default_factory=list[tuple[object, ...]])
    store_slots: list[tuple[object, ...]] = field(default_factory=list[tuple[object, ...]])
    node: ast.AST | None = None  # the store in the kernel

    @property
    def written(self) -> bool:
        """Whether some thread may write."""
        return self.stored or self.accumulated or self.updated


@dataclass
class Event:
    """One thing that happens. Which fields are set depends on `kind`:

    alloc, launch, copy, reset, host_write, host_read, host_use, tape_enter, tape_exit, tape_zero, tape_reset,
    backward, grad_zero, step, unrecorded, requires_grad, rebind, random, foreign, pass_begin, pass_end, host_add
    """

    kind: str
    source: SourceFile
    node: ast.AST
    order: int
    tape: TapeValue | None = None  # recording when it happens
    stack: tuple[Spot, ...] = ()  # the calls that led here, outermost first
    visit: tuple[int, ...] = ()  # passes of the loops around
    loops: tuple[int, ...] = ()  # those loops
    function: str | None = None
    conditional: bool = False
    array: Array | None = None
    other: Array | None = None
    of_grad: bool = False
    copied: bool = False
    what: str = ""
    kernel: Kernel | None = None
    touches: list[Touch] = field(default_factory=list[Touch])
    grads: list[Array] = field(default_factory=list[Array])
    subject: TapeValue | None = None
    seeds: list[tuple[Array, Any]] = field(default_factory=list[tuple[Array, Any]])
    arrays: list[Array] = field(default_factory=list[Array])
    recorded: bool = True
    reads: list[int] = field(default_factory=list[int])  # the events that read the gradients in what is written

    @property
    def line(self) -> int:
        """Where it stands."""
        return getattr(self.node, "lineno", 1)

    def spot(self, what: str = "") -> Spot:
        """Its place."""
        return Spot(self.source.name, self.line, what)

    @property
    def places(self) -> list[Spot]:
        """Its place and those of the calls that led there, innermost first."""
        return [self.spot(), *reversed(self.stack)]

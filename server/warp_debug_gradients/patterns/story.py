"""What the checkers are given: the program, its rehearsal, and which kernels matter for a gradient."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from warp_debug_gradients.patterns.events import Event, Touch
from warp_debug_gradients.patterns.hits import STRONG, WEAK, Hit, Pattern, Spot, hit
from warp_debug_gradients.patterns.kernel_reader import read_kernel
from warp_debug_gradients.patterns.kernels import Kernel
from warp_debug_gradients.patterns.program import Program
from warp_debug_gradients.patterns.rehearsal import Rehearsal
from warp_debug_gradients.patterns.source import SourceFile
from warp_debug_gradients.patterns.values import Array, TapeValue


@dataclass
class Body:
    """A kernel, or a function that it calls, whose adjoint may matter."""

    kernel: Kernel
    source: SourceFile
    function: ast.FunctionDef
    launched: bool  # under a tape, as far as the rehearsal saw

    @property
    def is_kernel(self) -> bool:
        """Whether it is the kernel itself."""
        return self.function is self.kernel.node


class Story:
    """A rehearsed program."""

    def __init__(self, program: Program, rehearsal: Rehearsal) -> None:
        self.program = program
        self.rehearsal = rehearsal
        self.events = rehearsal.events
        self.bodies = list(self._bodies())
        self.passive = self._passive()

    @property
    def tapes(self) -> bool:
        """Whether anything is recorded at all."""
        return any(e.kind in ("tape_enter", "backward") for e in self.events)

    def by_hand(self, tape: TapeValue | None) -> bool:
        """Whether the user records functions of their own on a tape: what looks lost may be in them."""
        return any(e.kind == "foreign" and e.what == "record_func" and e.tape is tape for e in self.events)

    def _passive(self) -> dict[int, set[str]]:
        """For each kernel, the arguments that never had gradient storage in a recorded launch."""
        without: dict[int, set[str]] = {}
        other: dict[int, set[str]] = {}
        for event in self.events:
            if event.kind == "launch" and event.kernel is not None and event.tape is not None:
                for touch in event.touches:
                    book = without if touch.array.requires_grad is False else other
                    book.setdefault(id(event.kernel.node), set()).add(touch.path)
        return {key: paths - other.get(key, set()) for key, paths in without.items()}

    def _bodies(self) -> Iterator[Body]:
        """Kernels that are recorded, or of which no launch was seen; not those launched outside of tapes only."""
        recorded: set[int] = set()
        seen: set[int] = set()
        for event in self.events:
            if event.kind == "launch" and event.kernel is not None:
                seen.add(id(event.kernel.node))
                if event.tape is not None and event.recorded and carries(event):
                    recorded.add(id(event.kernel.node))
        done: set[tuple[int, int]] = set()
        for source in self.program.sources:
            for node, compiled in source.compiled.items():
                if compiled.kind != "kernel" or not isinstance(node, ast.FunctionDef):
                    continue
                launched = id(node) in recorded
                if not launched and (id(node) in seen or not self.tapes):
                    continue
                kernel = self.rehearsal.kernels.get(id(node)) or read_kernel(self.program, source, node)
                for where, function in [(source, node), *kernel.called]:
                    key = (id(where), id(function))
                    if key not in done:
                        done.add(key)
                        yield Body(kernel, where, function, launched)

    def lead(
        self,
        pattern: Pattern,
        body: Body,
        node: ast.AST,
        detail: str = "",
        *,
        strong: bool,
        variable: str | None = None,
    ) -> Hit:
        """A hit inside a kernel; strong only where a launch under a tape was seen."""
        likelihood = STRONG if strong and body.launched else WEAK
        return hit(pattern, likelihood, body.source, node, detail, variable=variable, function=body.function.name)

    def report(
        self, pattern: Pattern, event: Event, detail: str, *, strong: bool, array: Array | None = None,
        related: list[Spot] | None = None,
    ) -> Hit:  # fmt: skip
        """A hit at an event of the host code."""
        return hit(
            pattern,
            STRONG if strong else WEAK,
            event.source,
            event.node,
            detail,
            variable=array.name or None if array else None,
            function=event.function,
            related=unique([*(related or []), *reversed(event.stack)]),
        )


def carries(event: Event) -> bool:
    """Whether a launch writes anything that may have a gradient."""
    written = [t for t in event.touches if t.written]
    return not written or any(t.array.requires_grad is not False for t in written)


def active(arrays: list[Array]) -> list[Array]:
    """Those that certainly have gradient storage."""
    return [a for a in arrays if a.requires_grad is True]


def same_slot(first: tuple[object, ...], second: tuple[object, ...]) -> bool:
    """Whether two accesses may meet: every coordinate is open in one of them, or equal."""
    return all(a is None or b is None or a == b for a, b in zip(first, second))


def meet(reads: list[tuple[object, ...]], writes: list[tuple[object, ...]]) -> bool:
    """Whether any of the reads may meet any of the writes."""
    return not reads or not writes or any(same_slot(r, w) for r in reads for w in writes)


def made(array: Array) -> Spot:
    """Where an array was made."""
    return Spot(array.source.name, array.line, f"{array.label} is made here")


def within(event: Event, loops: tuple[int, ...]) -> bool:
    """Whether an event lies in these loops."""
    return event.loops[: len(loops)] == loops


def same_pass(event: Event, other: Event) -> bool:
    """Whether an event lies in the loops of the other one, in the same pass of each."""
    return within(event, other.loops) and event.visit[: len(other.visit)] == other.visit


def unique(spots: list[Spot]) -> list[Spot]:
    """Each place once."""
    seen: set[tuple[str, int]] = set()
    return [s for s in spots if (s.file, s.line) not in seen and not seen.add((s.file, s.line))]


def writes(event: Event) -> list[tuple[Array, Touch | None]]:
    """The arrays whose content an event changes."""
    if event.kind == "launch":
        return [(t.array, t) for t in event.touches if t.written]
    if event.kind in ("copy", "reset") or (event.kind == "host_write" and not event.of_grad):
        return [(event.array, None)] if event.array is not None else []
    return []

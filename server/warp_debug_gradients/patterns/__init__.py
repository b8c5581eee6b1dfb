"""Known patterns that can break a gradient, found in the source alone. A hit is a lead, never a verdict.

source      one parsed file: what means Warp, what is a kernel
program     the files together: imports resolved among them
kernels     what a kernel reads, writes, and needs again in its adjoint
rehearsal   the host code followed in order, without running it: events
story       both, for the checkers; one module a family of patterns, each with `check(story)`
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from warp_debug_gradients.patterns import (
    accumulators,
    custom,
    defects,
    disabled,
    draws,
    gradients,
    handed,
    inplace,
    late,
    loops,
    overwrites,
    piecewise,
    seeds,
    singular,
    storage,
    tapes,
    unrecorded,
)
from warp_debug_gradients.patterns.hits import STRONG, WEAK, Hit, Pattern, Spot, ranked
from warp_debug_gradients.patterns.program import Program
from warp_debug_gradients.patterns.rehearsal import Rehearsal
from warp_debug_gradients.patterns.source import SourceFile
from warp_debug_gradients.patterns.story import Story

__all__ = ["CHECKERS", "STRONG", "WEAK", "Hit", "Pattern", "Scan", "Spot", "all_patterns", "examine", "scan"]

CHECKERS = (
    overwrites, accumulators, storage, disabled, unrecorded, gradients, late, handed, tapes, seeds, draws,
    inplace, loops, singular, piecewise, custom, defects,
)  # fmt: skip


@dataclass
class Scan:
    """What was looked at, and what was found."""

    hits: list[Hit] = field(default_factory=list[Hit])
    scanned: list[str] = field(default_factory=list[str])
    skipped: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    notes: list[str] = field(default_factory=list[str])
    kernels: int = 0
    tapes: int = 0


def scan(files: Iterable[str | Path], root: Path | None = None) -> list[Hit]:
    """The hits in these files, strong leads first. Nothing is run; files that cannot be parsed are passed over."""
    return examine(files, root).hits


def examine(files: Iterable[str | Path], root: Path | None = None, strict: bool = False) -> Scan:
    """As `scan`, with what was looked at. `root`: file names are shown relative to it. `strict`: let our errors out."""
    found = Scan()
    sources: list[SourceFile] = []
    for file in files:
        path = Path(file).resolve()
        name = path.relative_to(root).as_posix() if root and path.is_relative_to(root) else str(path)
        if name in found.scanned:
            continue
        try:
            source = SourceFile(path, name, path.read_text(errors="replace"))
        except (OSError, RecursionError) as error:
            found.skipped.append((name, str(error)))
            continue
        if source.error:
            found.skipped.append((name, f"it cannot be parsed: {source.error}"))
        else:
            found.scanned.append(name)
            sources.append(source)
    program = Program(sources)
    rehearsal = Rehearsal(program, strict=strict)
    rehearsal.run()
    story = Story(program, rehearsal)
    found.notes = rehearsal.notes
    found.kernels = sum(c.kind == "kernel" for s in sources for c in s.compiled.values())
    found.tapes = len({(id(e.source), e.line) for e in story.events if e.kind == "tape_enter"})
    hits: list[Hit] = []
    for checker in CHECKERS:
        try:
            hits += checker.check(story)
        except Exception as error:
            if strict:
                raise
            name = checker.__name__.rsplit(".", 1)[-1]
            found.notes.append(
                f"the checker {name} failed ({type(error).__name__}: {error}): its patterns are not covered"
            )
    found.hits = ranked(hits)
    return found


def all_patterns() -> list[Pattern]:
    """Every pattern that is looked for."""
    return [value for checker in CHECKERS for value in vars(checker).values() if isinstance(value, Pattern)]

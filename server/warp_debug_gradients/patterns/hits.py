"""What a checker finds. A hit is a lead, never a verdict: only a measurement says whether it matters."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from warp_debug_gradients.catalogue import CATALOGUE
from warp_debug_gradients.patterns.source import SourceFile

STRONG, WEAK = "strong", "weak"


@dataclass(frozen=True)
class Pattern:
    """A known pattern: its name, the cause it would be, why it can hurt and when it is harmless."""

    name: str
    code: str
    why: str
    harmless: str
    repair: str

    @property
    def section(self) -> str:
        """The section of references/quick-checks.md."""
        return CATALOGUE[self.code].section


@dataclass(frozen=True)
class Spot:
    """A line of the user's code, and what it has to do with a hit."""

    file: str
    line: int
    what: str = ""


@dataclass
class Hit:
    """One place where a pattern was recognised."""

    pattern: Pattern
    likelihood: str  # STRONG or WEAK
    file: str
    line: int
    construct: str  # the source text
    detail: str = ""  # what is special about this one
    variable: str | None = None
    function: str | None = None
    related: list[Spot] = field(default_factory=list[Spot])

    @property
    def code(self) -> str:
        """The cause code."""
        return self.pattern.code


def hit(
    pattern: Pattern,
    likelihood: str,
    source: SourceFile,
    node: ast.AST | int,
    detail: str = "",
    *,
    variable: str | None = None,
    function: str | None = None,
    related: list[Spot] | None = None,
) -> Hit:
    """A hit at a node (or line) of a file."""
    line = node if isinstance(node, int) else getattr(node, "lineno", 1)
    return Hit(pattern, likelihood, source.name, line, source.row(line), detail, variable, function, related or [])


def ranked(hits: list[Hit]) -> list[Hit]:
    """Strong before weak, one hit a cause and line, in the order of the files' lines otherwise."""
    best: dict[tuple[str, str, int], Hit] = {}
    for each in hits:
        key = (each.code, each.file, each.line)
        known = best.get(key)
        if known is None or (each.likelihood == STRONG and known.likelihood == WEAK):
            best[key] = each
    return sorted(best.values(), key=lambda h: (h.likelihood != STRONG, h.file, h.line, h.pattern.name))

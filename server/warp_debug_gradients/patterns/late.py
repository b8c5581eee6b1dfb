"""Gradients that are kept for later: used in the update before this iteration's takes their place."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warp_debug_gradients.patterns.hits import STRONG, Hit, Pattern, Spot, hit
from warp_debug_gradients.patterns.source import SourceFile
from warp_debug_gradients.patterns.story import Story

KEPT = Pattern(
    "gradient kept for the next iteration", "stale_gradient",
    "what is used between backward and this assignment is the gradient of the iteration before",
    "the older gradient is meant (a conjugate direction, a convergence test)",
    "Assign it before it is used.",
)  # fmt: skip


def check(story: Story) -> Iterator[Hit]:
    """Blocks that call backward, use a variable, and only then give it the gradient."""
    for source in story.program.sources:
        for block in _blocks(source) if "backward" in source.text else ():  # most files of a package have none
            yield from _kept(source, block)


def _blocks(source: SourceFile) -> Iterator[list[ast.stmt]]:
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef | ast.For | ast.While):
            yield node.body


def _kept(source: SourceFile, block: list[ast.stmt]) -> Iterator[Hit]:
    swept = next((k for k, s in enumerate(block) if any(n.attr == "backward" for n in _attributes(s))), len(block))
    for last, statement in enumerate(block):
        target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
        if last <= swept or not isinstance(target, ast.Name | ast.Attribute) or not _gradients(statement):
            continue
        name = ast.unparse(target)
        others = [s for k, s in enumerate(block) if k != last and _gradients(s)]
        used = next((k for k in range(swept + 1, last) if name in _names(block[k], ast.Load)), None)
        if used is None or others or any(name in _names(s, ast.Store) for s in block[:used]):
            continue
        yield hit(
            KEPT, STRONG, source, statement, f"{name} is used in line {block[used].lineno}, before it is this gradient",
            variable=name, related=[Spot(source.name, block[used].lineno, "used here")],
        )  # fmt: skip


def _attributes(node: ast.AST) -> list[ast.Attribute]:
    return [n for n in ast.walk(node) if isinstance(n, ast.Attribute)]


def _gradients(statement: ast.stmt) -> list[ast.Attribute]:
    """What reads a `.grad`; zeroing it reads nothing."""
    zeroed = {id(a.value) for a in _attributes(statement) if a.attr in ("zero_", "fill_")}
    return [a for a in _attributes(statement) if a.attr == "grad" and id(a) not in zeroed]


def _names(node: ast.AST, context: type[ast.expr_context]) -> set[str]:
    found = [n for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, context)]
    return {ast.unparse(n) for n in found}

"""Gradients that are kept for later: used in the update before this iteration's takes their place."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warp_debug_gradients.patterns.hits import STRONG, Hit, Pattern, Spot, hit
from warp_debug_gradients.patterns.source import SourceFile
from warp_debug_gradients.patterns.story import Story, same_pass, within

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
    yield from _handed_on(story)


def _blocks(source: SourceFile) -> Iterator[list[ast.stmt]]:
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef | ast.For | ast.While):
            yield node.body


def _kept(source: SourceFile, block: list[ast.stmt]) -> Iterator[Hit]:
    swept = next((k for k, s in enumerate(block) if any(n.attr == "backward" for n in _attributes(s))), len(block))
    for last, statement in enumerate(block):
        if last <= swept or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        target = statement.targets[0]
        if not isinstance(target, ast.Name | ast.Attribute) or not _gradients(statement):
            continue
        name = ast.unparse(target)
        others = [s for k, s in enumerate(block) if k != last and _gradients(s)]
        used = next(
            (k for k in range(swept + 1, last) if name in _names(block[k], ast.Load) and not _prints(block[k])), None
        )
        if (
            used is None
            or name in _names(statement.value, ast.Load)
            or others
            or any(name in _names(s, ast.Store) for s in block[:used])
        ):
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


def _prints(statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "print"


def _handed_on(story: Story) -> Iterator[Hit]:
    """An update with numbers that were all read before this pass's backward, however they came here."""
    said: set[int] = set()
    for event in story.events:
        update = event.kind in ("reset", "alloc", "host_write") and event.tape is None and event.loops
        if not update or not event.reads or id(event.node) in said:
            continue
        reads = [e for n in event.reads if (e := story.events[n]).array is not None]
        for root in {a.root for a in event.grads}:
            own = [r for r in reads if r.array is not None and r.array.root is root]
            calls = [
                e for e in story.events[: event.order]
                if e.kind == "backward" and any(a.root is root for a in e.arrays)
                and same_pass(e, event)
            ]  # fmt: skip
            earlier = own and within(own[-1], event.loops) and not same_pass(own[-1], event)
            if earlier and calls and own[-1].order < calls[0].order:
                said.add(id(event.node))
                yield story.report(
                    KEPT, event, f"{root.label}.grad was read in the pass before, and backward ran in line {calls[-1].line}",
                    strong=True, array=root, related=[own[-1].spot("read here"), calls[-1].spot("backward")],
                )  # fmt: skip

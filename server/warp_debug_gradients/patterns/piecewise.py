"""Operations whose derivative is zero almost everywhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warp_debug_gradients.patterns.bodies import Facts, statements
from warp_debug_gradients.patterns.hits import Hit, Pattern
from warp_debug_gradients.patterns.kernels import PIECEWISE
from warp_debug_gradients.patterns.story import Body, Story

STEPS = PIECEWISE - {"bool", "isnan", "isfinite", "isinf", "nonzero", "frac"}

CONSTANT = Pattern(
    "piecewise constant operation", "piecewise_constant",
    "its derivative is zero almost everywhere: what depends on the array only through it gets no gradient",
    "it only chooses an index or a cell, and the value itself goes on by another way; zero is the right derivative",
    "A smooth surrogate, if a slope is wanted: a modelling choice.",
)  # fmt: skip


def check(story: Story) -> Iterator[Hit]:
    """Steps through which alone an output depends on an array."""
    for body in story.bodies:
        facts = Facts(story, body)
        cut = _cut_off(body)
        for node in statements(body.function):
            for child in ast.iter_child_nodes(node):
                if not isinstance(child, ast.expr):
                    continue
                for part in ast.walk(child):
                    if isinstance(part, ast.Call) and _step(facts, part) and not _remainder(child, part):
                        yield from _report(story, body, facts, part, cut)


def _step(facts: Facts, node: ast.Call) -> bool:
    return facts.called(node) in STEPS and any(facts.depends(a) for a in node.args)


def _remainder(expression: ast.expr, node: ast.Call) -> bool:
    """`x - floor(x)`: the slope of x is there."""
    return bool(node.args) and any(
        isinstance(n, ast.BinOp) and isinstance(n.op, ast.Sub) and n.right is node
        and ast.unparse(n.left) == ast.unparse(node.args[0])
        for n in ast.walk(expression)
    )  # fmt: skip


def _cut_off(body: Body) -> set[str]:
    """Arrays that reach what the kernel writes by their values, but not by any derivative."""
    stores = body.kernel.stores
    values = {p for s in stores for p in s.vals}
    smooth = {p for s in stores for p in s.deps}
    return values - smooth - body.kernel.written


def _report(story: Story, body: Body, facts: Facts, node: ast.Call, cut: set[str]) -> Iterator[Hit]:
    arrays = {
        ast.unparse(part.value).split("[")[0]
        for a in node.args
        for part in facts.expanded(a)
        if isinstance(part, ast.Subscript)
    }
    severed = sorted(arrays & cut)
    name = facts.called(node)
    if severed and body.is_kernel:
        yield story.lead(CONSTANT, body, node, f"the output depends on {severed[0]} through {name} only", strong=True,
                         variable=severed[0])  # fmt: skip
    elif not _only_index(body, facts, node):
        yield story.lead(CONSTANT, body, node, f"{name} has derivative zero", strong=False)


def _only_index(body: Body, facts: Facts, node: ast.Call) -> bool:
    """Whether the result only chooses array elements (or is compared), directly or through one local."""
    names: set[str] = set()
    for statement in statements(body.function):
        if isinstance(statement, ast.Assign) and any(n is node for n in ast.walk(statement.value)):
            names |= {t.id for t in statement.targets if isinstance(t, ast.Name)}
    for _ in range(3):  # what is computed from it is an index, too
        names |= {
            t.id
            for s in statements(body.function)
            if isinstance(s, ast.Assign) and {n.id for n in ast.walk(s.value) if isinstance(n, ast.Name)} & names
            and not facts.depends(s.value)
            for t in s.targets
            if isinstance(t, ast.Name)
        }  # fmt: skip
    inside: set[int] = set()
    for part in ast.walk(body.function):
        indices: list[ast.AST] = []
        if isinstance(part, ast.Subscript):
            indices = [part.slice]
        elif isinstance(part, ast.Call) and facts.called(part).startswith("atomic_"):
            indices = list(part.args[1:-1])
        elif isinstance(part, (ast.Compare, ast.For)):
            indices = [part] if isinstance(part, ast.Compare) else [part.iter]
        inside |= {id(n) for i in indices for n in ast.walk(i)}
    if not names:
        return id(node) in inside
    uses = [
        n for s in statements(body.function)
        for c in ast.iter_child_nodes(s) if isinstance(c, ast.expr)
        for n in ast.walk(c)
        if isinstance(n, ast.Name) and n.id in names and isinstance(n.ctx, ast.Load)
    ]  # fmt: skip
    mixed = [n for n in uses if id(n) not in inside and not _defines_index(body, n, names)]
    return not mixed


def _defines_index(body: Body, use: ast.Name, names: set[str]) -> bool:
    """Whether a use stands on the right of the definition of another index."""
    for s in statements(body.function):
        if isinstance(s, ast.Assign) and any(n is use for n in ast.walk(s.value)):
            return all(isinstance(t, ast.Name) and t.id in names for t in s.targets)
    return False

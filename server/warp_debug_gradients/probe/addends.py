"""Which of its arguments a kernel only adds to what it writes: `out[0] = a[0] + w * b[0]`. Pure: syntax trees in, names out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

CASTS = frozenset({"float", "float16", "float32", "float64"})


def addition(function: ast.FunctionDef, source: str, target: str) -> set[str] | None:
    """Names in the factors by which `source` is weighted, where all that the kernel does with it is to add it to `target`.

    source, target: names of array arguments. None: its elements are used otherwise as well, subtracted, or not at all.
    """
    values = _values(function)
    factors: set[str] = set()
    added = 0
    for value in _stored(function, target):
        for found in _uses(value, source, values):
            if found is None or source in found:
                return None
            factors |= found
            added += 1
    loads = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == source]
    return factors if added and len(loads) == added else None


def _values(function: ast.FunctionDef) -> dict[str, ast.expr]:
    """The locals that are assigned once, outside of any loop's own variable, by name."""
    stored = [n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return {
        node.targets[0].id: node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        and len(node.targets) == 1
        and isinstance(node.targets[0], ast.Name)
        and stored.count(node.targets[0].id) == 1
    }


def _stored(function: ast.FunctionDef, target: str) -> Iterator[ast.expr]:
    """What is written or added to elements of `target`."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and any(_is_element(t, target) for t in node.targets):
            yield node.value
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
            yield from [node.value] if _is_element(node.target, target) else []
        if isinstance(node, ast.Call) and _called(node) == "atomic_add" and node.args:
            first = node.args[0]
            yield from [node.args[-1]] if isinstance(first, ast.Name) and first.id == target else []


def _uses(
    node: ast.expr,
    source: str,
    values: dict[str, ast.expr],
    sign: int = 1,
    factors: frozenset[str] = frozenset(),
    followed: frozenset[str] = frozenset(),
) -> Iterator[frozenset[str] | None]:
    """For each use of `source` in an expression the names in its factors; None for one that is no summand, or subtracted.

    A local that is assigned once stands for its value; one that depends on itself (in a loop) for no summand.
    """
    if source not in _names(node, values):
        return
    if isinstance(node, ast.Name) and node.id in values and node.id not in followed:
        yield from _uses(values[node.id], source, values, sign, factors, followed | {node.id})
    elif _is_element(node, source):
        yield factors if sign > 0 else None
    elif isinstance(node, ast.Call) and _called(node) in CASTS and len(node.args) == 1:
        yield from _uses(node.args[0], source, values, sign, factors, followed)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield from _uses(node.operand, source, values, -sign, factors, followed)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield from _uses(node.left, source, values, sign, factors, followed)
        yield from _uses(node.right, source, values, -sign if isinstance(node.op, ast.Sub) else sign, factors, followed)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        inside, factor = node.left, node.right
        if isinstance(node.op, ast.Mult) and source not in _names(inside, values):
            inside, factor = factor, inside
        yield from _uses(inside, source, values, sign, factors | _names(factor, values), followed)
    else:
        yield None


def _names(node: ast.expr, values: dict[str, ast.expr]) -> set[str]:
    """The names that an expression depends on, through the locals that are assigned once."""
    found: set[str] = set()
    left = [node]
    while left:
        new = {n.id for n in ast.walk(left.pop()) if isinstance(n, ast.Name)} - found
        found |= new
        left += [values[name] for name in new if name in values]
    return found


def _is_element(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == name


def _called(node: ast.Call) -> str:
    """The last part of a called name: atomic_add of wp.atomic_add."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")

"""Module constants that bound the size of a run: overriding one makes a smaller run of the same program.

Pure and static: source text in, knobs out. A constant counts if it is an integer above 3 that reaches a loop
bound, an array shape or a launch dimension, directly or through other module constants.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warp_debug_gradients.schemas import Knob

SMALLEST = 4
MAKERS = {"zeros", "ones", "empty", "full", "array", "zeros_like", "empty_like", "linspace", "arange", "random", "rand"}
BOUNDS = {"loop": "loop iterations", "launch": "launch dimension (threads)", "shape": "array size"}


def find_knobs(source: str, file: str, stem: str) -> list[Knob]:
    """The knobs of one file. `stem` is the module's name, which overrides are written with."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    constants = _integer_constants(tree)
    reached: dict[str, list[str]] = {}
    for kind, name in _uses(tree):
        for root in _roots(name, tree):
            if root in constants and kind not in reached.setdefault(root, []):
                reached[root].append(kind)
    return [
        Knob(
            name=f"{stem}.{name}",
            value=value,
            suggested=max(2, value // 4) if value < 64 else max(4, value // 10),
            file=file,
            line=line,
            bounds=", ".join(BOUNDS[kind] for kind in reached[name]),
        )
        for name, (value, line) in constants.items()
        if name in reached
    ]


def _integer_constants(tree: ast.Module) -> dict[str, tuple[int, int]]:
    """Module-level `NAME = 40`: name -> (value, line). A name that is assigned twice is no constant."""
    found: dict[str, tuple[int, int]] = {}
    seen: set[str] = set()
    for node in tree.body:
        for target, value in _assignments(node):
            if target in seen:
                found.pop(target, None)
            elif isinstance(value, ast.Constant) and type(value.value) is int and value.value >= SMALLEST:
                found[target] = (value.value, node.lineno)
            seen.add(target)
    return found


def _assignments(node: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
        yield node.target.id, node.value
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id, node.value
            elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                for name, value in zip(target.elts, node.value.elts):
                    if isinstance(name, ast.Name):
                        yield name.id, value


def _uses(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """(kind, name) for every name inside a loop bound, a launch dimension or an array shape."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        keywords = {k.arg: k.value for k in node.keywords}
        if called == "range":
            sources, kind = list(node.args), "loop"
        elif called in ("launch", "launch_tiled"):
            sources, kind = [*node.args[1:2], *([keywords["dim"]] if "dim" in keywords else [])], "launch"
        elif called in MAKERS:
            shape = [keywords[k] for k in ("shape", "size", "num") if k in keywords]
            sources, kind = [*node.args, *shape], "shape"
        else:
            continue
        for source in sources:
            for inner in ast.walk(source):
                if isinstance(inner, ast.Name):
                    yield kind, inner.id


def _roots(name: str, tree: ast.Module, depth: int = 3) -> set[str]:
    """The module constants behind `name`: itself, and those its module-level definition is made of."""
    found = {name}
    if depth:
        for node in tree.body:
            for target, value in _assignments(node):
                if target == name:
                    for inner in ast.walk(value):
                        if isinstance(inner, ast.Name) and inner.id != name:
                            found |= _roots(inner.id, tree, depth - 1)
    return found

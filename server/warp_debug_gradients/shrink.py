"""Constants that bound the size of a run: overriding one makes a smaller run of the same program.

Pure and static: source text in, knobs out. A constant counts if it is an integer above 3 that reaches a loop
bound, an array shape or a launch dimension, directly or through other constants: of the module, or set on `self` by a
class's `__init__` (named `Class.steps`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

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
    return [knob for scope in _scopes(tree) for knob in _knobs_of(scope, file, stem)]


@dataclass(frozen=True)
class _Scope:
    """Where constants are defined and used. prefix: what comes before a constant's name in an override."""

    definitions: list[ast.stmt]
    body: ast.AST
    prefix: str
    self_name: str | None = None

    def named(self, node: ast.AST) -> str | None:
        """The constant that an expression is: `N`, or `steps` for `self.steps`."""
        if self.self_name is None:
            return node.id if isinstance(node, ast.Name) else None
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == self.self_name:
            return node.attr
        return None


def _scopes(tree: ast.Module) -> Iterator[_Scope]:
    yield _Scope(tree.body, tree, "")
    for node in (n for n in tree.body if isinstance(n, ast.ClassDef)):
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and method.name == "__init__" and method.args.args:
                yield _Scope(method.body, node, f"{node.name}.", method.args.args[0].arg)


def _knobs_of(scope: _Scope, file: str, stem: str) -> list[Knob]:
    constants = _integer_constants(scope)
    reached: dict[str, list[str]] = {}
    for kind, name in _uses(scope):
        for root in _roots(name, scope):
            if root in constants and kind not in reached.setdefault(root, []):
                reached[root].append(kind)
    return [
        Knob(
            name=f"{stem}.{scope.prefix}{name}",
            value=value,
            suggested=max(2, value // 4) if value < 64 else max(4, value // 10),
            file=file,
            line=line,
            bounds=", ".join(BOUNDS[kind] for kind in reached[name]),
        )
        for name, (value, line) in constants.items()
        if name in reached
    ]


def _integer_constants(scope: _Scope) -> dict[str, tuple[int, int]]:
    """`NAME = 40`: name -> (value, line). A name that is assigned twice is no constant."""
    found: dict[str, tuple[int, int]] = {}
    seen: set[str] = set()
    for node in scope.definitions:
        for target, value in _assignments(node, scope):
            if target in seen:
                found.pop(target, None)
            elif isinstance(value, ast.Constant) and type(value.value) is int and value.value >= SMALLEST:
                found[target] = (value.value, node.lineno)
            seen.add(target)
    return found


def _assignments(node: ast.stmt, scope: _Scope) -> Iterator[tuple[str, ast.expr]]:
    pairs: list[tuple[ast.expr, ast.expr]] = []
    if isinstance(node, ast.AnnAssign) and node.value:
        pairs.append((node.target, node.value))
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs += zip(target.elts, node.value.elts)
            else:
                pairs.append((target, node.value))
    for target, value in pairs:
        name = scope.named(target)
        if name is not None:
            yield name, value


def _uses(scope: _Scope) -> Iterator[tuple[str, str]]:
    """(kind, name) for every name inside a loop bound, a launch dimension or an array shape."""
    for node in ast.walk(scope.body):
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
                name = scope.named(inner)
                if name is not None:
                    yield kind, name


def _roots(name: str, scope: _Scope, depth: int = 3) -> set[str]:
    """The constants behind `name`: itself, and those its definition is made of."""
    found = {name}
    if depth:
        for node in scope.definitions:
            for target, value in _assignments(node, scope):
                if target == name:
                    for inner in map(scope.named, ast.walk(value)):
                        if inner is not None and inner != name:
                            found |= _roots(inner, scope, depth - 1)
    return found

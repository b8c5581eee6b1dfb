"""The constants of one module, replaced in its syntax tree."""

from __future__ import annotations

import ast
import difflib
import importlib.util
import os
from typing import Any, Iterator, Sequence, TypeGuard

from .constant_values import annotated_kind, called, fitted, kind_of


class OverrideError(Exception):
    """An override that cannot be applied as asked. `code` is stable, the message says what to change."""

    def __init__(self, code: str, message: str, key: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.key = key


class Replacer:
    """Finds the assignments of constants in one module's syntax tree and replaces their values."""

    def __init__(self, source: str | bytes, filename: str, package: str = "") -> None:
        self.filename = filename
        self.package = package
        self.text = importlib.util.decode_source(source) if isinstance(source, bytes) else source
        self.tree = ast.parse(source, filename)

    def replace(self, key: str, path: list[str], value: Any) -> list[dict[str, Any]]:
        """Replaces one constant; returns what changed, one description an assignment, or raises OverrideError."""
        scopes = [self.tree]
        for part in path[:-1]:
            scopes = [
                n for scope in scopes for n in statements(scope) if isinstance(n, ast.ClassDef) and n.name == part
            ]
        kinds = {}
        for scope in scopes:
            for statement in statements(scope):
                for name, kind in defined(statement):
                    kinds.setdefault(name, []).append((kind, statement))
        mine = kinds.get(path[-1], [])
        change = _Change(self, key, path[-1], value)
        if any(kind == "value" for kind, _ in mine):
            for scope in scopes:
                change.rewrite(scope)
        else:
            for method in filter(None, map(initializer, scopes)):
                change.name = f"{method.args.args[0].arg}.{path[-1]}"
                change.rewrite(method)
        if not change.places and len(path) > 1:
            change.name = path[-1]
            self._functions(path[:-1], change)
        if not change.places:
            raise self._refusal(key, path, mine, scopes)
        return change.places

    def _functions(self, path: list[str], change: _Change) -> None:
        """The default of a function's parameter: `train.solve.sweeps`, `train.Solver.solve.sweeps`; or `train.solve.range`."""
        scopes = [self.tree]
        for part in path[:-1]:
            scopes = [n for s in scopes for n in statements(s) if isinstance(n, ast.ClassDef) and n.name == part]
        for function in [n for s in scopes for n in statements(s)]:
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) and function.name == path[-1]:
                change.rewrite_default(function)
                if change.name == "range" and not change.places:
                    change.rewrite_range(function)

    def source_of(self, node: ast.AST) -> str:
        return " ".join((ast.get_source_segment(self.text, node) or "").split())[:200]

    def constants(self) -> list[str]:
        """Dotted names of everything this module assigns at its top level or in its classes."""
        return [*constant_names(self.tree)]

    def _refusal(
        self, key: str, path: list[str], mine: list[tuple[str, ast.stmt]], scopes: Sequence[ast.AST]
    ) -> OverrideError:
        name, where = path[-1], os.path.basename(self.filename)
        kinds = {kind for kind, _ in mine}
        for kind, statement in mine:
            if kind == "import":
                return OverrideError(
                    "override_imported_name", f"override {key!r}: {self._import_advice(name, statement)}"
                )
        if "augmented" in kinds:
            text = self.source_of(mine[0][1])
            return OverrideError(
                "override_augmented_only",
                f"override {key!r}: {where} never assigns {name}, it only changes it ({text})",
            )
        if "bare" in kinds:
            return OverrideError(
                "override_no_value", f"override {key!r}: {where} declares {name} without a value to replace"
            )
        known = self.constants()
        near = difflib.get_close_matches(".".join(path), known, 3)
        message = f"override {key!r}: {where} has no constant {'.'.join(path)}"
        if kinds:
            message += f" ({name} is a {'/'.join(sorted(kinds))})"
        if near:
            message += f"; did you mean {' or '.join(near)}?"
        message += f"{'' if near else '.'} Constants there: {', '.join(known[:30]) or 'none'}"
        stars = [
            s for scope in scopes for s in statements(scope) if isinstance(s, ast.ImportFrom) and s.names[0].name == "*"
        ]
        if stars:
            message += f"; it may come from {', '.join(self._imported_module(s) for s in stars)} (import *)"
        return OverrideError("override_unknown_name", message)

    def _import_advice(self, name: str, statement: Any) -> str:
        origin = next(a.name for a in statement.names if (a.asname or a.name.partition(".")[0]) == name)
        if isinstance(statement, ast.Import):
            return f"{name} is the imported module {origin}, not a constant"
        module = self._imported_module(statement)
        return f"{name} is only imported here; set {module}.{origin} instead"

    def _imported_module(self, statement: ast.ImportFrom) -> str:
        if not statement.level:
            return statement.module or ""
        parts = self.package.split(".") if self.package else []
        parts = parts[: len(parts) - (statement.level - 1)]
        return ".".join([*parts, statement.module] if statement.module else parts)


class _Change:
    """One constant getting its new value, at every assignment of a scope. `name`: `STEPS`, or `self.steps`."""

    def __init__(self, replacer: Replacer, key: str, name: str, value: Any) -> None:
        self.replacer, self.key, self.name, self.value = replacer, key, name, value
        self.places = []

    def rewrite(self, scope: ast.AST) -> None:
        for block in blocks(scope):
            block[:] = [new for old in block for new in self._statement(old)]
            for statement in block:
                if not isinstance(statement, _SCOPES):
                    self.rewrite(statement)

    def rewrite_default(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """The default of the parameter of this name."""
        arguments = function.args
        positional = [*arguments.posonlyargs, *arguments.args]
        first = len(positional) - len(arguments.defaults)
        for argument, defaults, index in [
            *((a, arguments.defaults, k) for k, a in enumerate(positional[first:])),
            *((a, arguments.kw_defaults, k) for k, a in enumerate(arguments.kwonlyargs)),
        ]:
            if argument.arg == self.name and defaults[index] is not None:
                defaults[index] = self._replaced(defaults[index], function, argument.annotation)

    def rewrite_range(self, function: ast.AST) -> None:
        """The number in `for _ in range(12)`, where the function has one such loop."""
        calls = [n.iter for n in ast.walk(function) if isinstance(n, ast.For) and isinstance(n.iter, ast.Call)]
        counted = [c for c in calls if called(c) == "range" and len(c.args) == 1 and kind_of(c.args[0]) == "int"]
        if len(counted) == 1:
            counted[0].args[0] = self._replaced(counted[0].args[0], counted[0])

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(node, ast.Assign):
            return self._assign(node)
        if isinstance(node, ast.AnnAssign) and self._is_name(node.target) and node.value is not None:
            node.value = self._replaced(node.value, node, node.annotation)
        elif isinstance(node, ast.AugAssign) and self._is_name(node.target):
            return [self._assignment(node, None)]
        elif any(name == self.name and kind == "import" for name, kind in defined(node)):
            return [node, self._assignment(node, None)]  # `try: from fast import N / except ImportError: N = 1`
        return [node]

    def _assign(self, node: ast.Assign) -> list[ast.stmt]:
        direct = [target for target in node.targets if self._is_name(target)]
        unpacked = [t for t in node.targets if isinstance(t, (ast.Tuple, ast.List)) and any(map(self._is_name, t.elts))]
        if direct and len(node.targets) == 1:
            node.value = self._replaced(node.value, node)
        elif direct:  # `A = B = 5`: B keeps its value
            own = self._assignment(node, node.value)
            node.targets = [target for target in node.targets if target not in direct]
            return [node, own]
        elif unpacked and len(node.targets) == 1 and _same_length(node.value, unpacked[0]):
            for position, target in enumerate(unpacked[0].elts):
                if self._is_name(target):
                    node.value.elts[position] = self._replaced(node.value.elts[position], node)
        elif unpacked:  # `NX, NY = shape()`
            return [node, self._assignment(node, None)]
        return [node]

    def _is_name(self, node: ast.expr) -> bool:
        return isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) == self.name

    def _assignment(self, statement: ast.stmt, old: ast.expr | None) -> ast.stmt:
        """A new `NAME = value` in the place of a statement; `old` is what the constant's type follows from."""
        target: Any = ast.parse(self.name, mode="eval").body
        target.ctx = ast.Store()
        target = ast.copy_location(target, statement)
        value = self._replaced(old, statement)
        return ast.copy_location(ast.Assign([target], value, lineno=statement.lineno), statement)

    def _replaced(
        self, old: ast.expr | None, statement: ast.stmt | ast.expr, annotation: ast.expr | None = None
    ) -> ast.expr:
        try:
            new = fitted(old, self.value, annotated_kind(annotation))
        except TypeError as error:
            where = f"{os.path.basename(self.replacer.filename)}:{statement.lineno}"
            raise OverrideError("override_type", f"override {self.key!r} at {where}: {error}") from None
        self.places.append(
            {
                "key": self.key,
                "old": self.replacer.source_of(old if old is not None else statement),
                "new": self.value,
                "file": self.replacer.filename,
                "line": statement.lineno,
            }
        )
        return ast.copy_location(new, old if old is not None else statement)


# -- statements ---------------------------------------------------------------------------------------------

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The statement lists directly under a node: body, orelse, handlers, match cases."""
    for field in node._fields:
        value = getattr(node, field, None)
        if isinstance(value, list) and value:
            if isinstance(value[0], ast.stmt):
                yield value
            elif isinstance(value[0], (ast.ExceptHandler, ast.match_case)):
                for part in value:
                    yield part.body


def statements(scope: ast.AST) -> Iterator[ast.stmt]:
    """All statements of a module or class, those in its if/try/with/for blocks too, not of inner scopes."""
    for block in blocks(scope):
        for statement in block:
            yield statement
            if not isinstance(statement, _SCOPES):
                yield from statements(statement)


def defined(statement: ast.stmt) -> Iterator[tuple[str, str]]:
    """(name, kind) for each name that a statement binds."""
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            for each in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
                if isinstance(each, ast.Name):
                    yield each.id, "value"
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        yield statement.target.id, "bare" if statement.value is None else "value"
    elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        yield statement.target.id, "augmented"
    elif isinstance(statement, (ast.Import, ast.ImportFrom)):
        for alias in statement.names:
            yield alias.asname or alias.name.partition(".")[0], "import"
    elif isinstance(statement, ast.ClassDef):
        yield statement.name, "class"
    elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield statement.name, "function"
    elif isinstance(statement, ast.For) and isinstance(statement.target, ast.Name):
        yield statement.target.id, "loop variable"


def initializer(scope: ast.AST) -> ast.FunctionDef | None:
    """The `__init__` of a class, where it takes `self`."""
    if not isinstance(scope, ast.ClassDef):
        return None
    methods = [s for s in statements(scope) if isinstance(s, ast.FunctionDef) and s.name == "__init__"]
    return methods[-1] if methods and methods[-1].args.args else None


def _own_attributes(method: ast.FunctionDef) -> Iterator[str]:
    """The attributes that an `__init__` sets on its object, such as `steps` of `self.steps = 10`."""
    for statement in statements(method):
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        for target in targets:
            if isinstance(target, ast.Attribute) and ast.unparse(target.value) == method.args.args[0].arg:
                yield target.attr


def constant_names(scope: ast.AST, prefix: str = "") -> dict[str, None]:
    found = {}
    method = initializer(scope)
    if method is not None:
        found.update({prefix + name: None for name in _own_attributes(method)})
    for statement in statements(scope):
        if isinstance(statement, ast.ClassDef):
            found.update(dict.fromkeys(constant_names(statement, f"{prefix}{statement.name}.")))
        found.update({prefix + name: None for name, kind in defined(statement) if kind == "value"})
    return found


def _same_length(value: ast.expr, targets: ast.Tuple | ast.List) -> TypeGuard[ast.Tuple | ast.List]:
    return (
        isinstance(value, (ast.Tuple, ast.List))
        and len(value.elts) == len(targets.elts)
        and not any(isinstance(e, ast.Starred) for e in [*targets.elts, *value.elts])
    )

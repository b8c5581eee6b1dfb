"""One file of the user's, parsed: which names mean Warp, which functions are kernels, which numbers are constants.

Static: nothing of the user's is run or imported.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path

DECORATORS = {"kernel", "func", "func_grad", "func_replay", "func_native", "struct", "overload"}
WARP_MODULES = ("warp", "warp_lang")


@dataclass
class Decorated:
    """A function or class that Warp compiles: what it is, and with which options."""

    kind: str  # kernel, func, func_grad, func_replay, func_native, struct
    of: str | None = None  # func_grad, func_replay: the function they belong to
    options: dict[str, ast.expr] = field(default_factory=dict[str, ast.expr])
    positional: list[ast.expr] = field(default_factory=list[ast.expr])


class SourceFile:
    """A parsed file. `tree` is None where it cannot be parsed; `error` says why."""

    def __init__(self, path: Path, name: str, text: str) -> None:
        self.path = path
        self.name = name  # as it is shown: relative to the workspace
        self.text = text
        self.rows = text.splitlines()
        self.tree: ast.Module | None = None
        self.error: str | None = None
        try:
            self.tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = getattr(error, "lineno", None)
            self.error = f"{type(error).__name__}{f' in line {line}' if line else ''}: {getattr(error, 'msg', error)}"
        self.nodes: list[ast.AST] = list(ast.walk(self.tree)) if self.tree else []
        self.aliases = self._aliases()
        self.compiled = self._compiled()
        self.constants = self._constants()
        self.options = self._module_options()

    def row(self, line: int) -> str:
        """The source text of a line, short."""
        text = self.rows[line - 1].strip() if 0 < line <= len(self.rows) else ""
        return text if len(text) <= 110 else text[:107] + "..."

    def mentions(self, node: ast.stmt, words: tuple[str, ...]) -> bool:
        """Whether the statement's text has one of these words."""
        rows = self.rows[node.lineno - 1 : node.end_lineno]
        return any(word in row for row in rows for word in words)

    # -- names ----------------------------------------------------------------------------------------

    def _aliases(self) -> dict[str, str]:
        """Local name -> dotted Warp name: `wp` -> "", `kernel` -> "kernel", `Adam` -> "optim.Adam"."""
        found: dict[str, str] = {}
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for name in node.names:
                    head, _, rest = name.name.partition(".")
                    if head in WARP_MODULES:
                        found[name.asname or head] = rest if name.asname else ""
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                head, _, rest = node.module.partition(".")
                if head in WARP_MODULES:
                    for name in node.names:
                        dotted = f"{rest}.{name.name}" if rest else name.name
                        found[name.asname or name.name] = "*" if name.name == "*" else dotted
        bound = {n.id for n in self.nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        if "wp" not in bound:  # handed on by a module of the user's: `from common import wp`
            found.setdefault("wp", "")
        return found

    def warp_name(self, node: ast.AST | None) -> str | None:
        """The dotted name below `warp` that an expression means, or None: `wp.utils.array_sum` -> "utils.array_sum"."""
        if isinstance(node, ast.Name):
            if node.id in self.aliases:
                return self.aliases[node.id]
            return node.id if self.aliases.get("*") and node.id in DECORATORS | {"launch", "Tape", "tid"} else None
        if isinstance(node, ast.Attribute):
            owner = self.warp_name(node.value)
            return None if owner is None else f"{owner}.{node.attr}" if owner else node.attr
        return None

    # -- what Warp compiles ---------------------------------------------------------------------------

    def _compiled(self) -> dict[ast.AST, Decorated]:
        """Every function and class with one of Warp's decorators, also by another name or through a call."""
        renamed: dict[str, ast.expr] = {}
        for node in self.nodes:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                renamed[node.targets[0].id] = node.value
        found: dict[ast.AST, Decorated] = {}
        named: dict[str, list[ast.AST]] = {}
        for node in self.nodes:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                named.setdefault(node.name, []).append(node)
                for decorator in node.decorator_list:
                    known = self._decorator(decorator, renamed, 0)
                    if known:
                        found[node] = known
        for node in self.nodes:  # step = wp.kernel(step_function), wp.Kernel(func=step_function)
            if isinstance(node, ast.Call) and self.warp_name(node.func) in ("kernel", "func", "Kernel", "struct"):
                keyed = [k.value for k in node.keywords if k.arg in ("f", "func")]
                for given in [*node.args[:1], *keyed]:
                    for function in named.get(given.id, []) if isinstance(given, ast.Name) else []:
                        kind = (self.warp_name(node.func) or "").lower()
                        found.setdefault(function, Decorated(kind, options=_keywords(node)))
        return found

    def _decorator(self, node: ast.expr, renamed: dict[str, ast.expr], depth: int) -> Decorated | None:
        call = node if isinstance(node, ast.Call) else None
        target = call.func if call else node
        name = self.warp_name(target)
        if name in DECORATORS:
            given = call.args if call else []
            of = ast.unparse(given[0]).rsplit(".", 1)[-1] if given and name in ("func_grad", "func_replay") else None
            kind = "kernel" if name == "overload" else name
            return Decorated(kind, of, _keywords(call) if call else {}, given)
        if call and isinstance(target, (ast.Name, ast.Attribute)) and ast.unparse(target).endswith("partial"):
            inner = self._decorator(call.args[0], renamed, depth + 1) if call.args and depth < 4 else None
            if inner:
                inner.options = {**inner.options, **_keywords(call)}
            return inner
        if isinstance(target, ast.Name) and target.id in renamed and depth < 4:
            inner = self._decorator(renamed[target.id], renamed, depth + 1)
            if inner and call:
                inner = Decorated(inner.kind, inner.of, {**inner.options, **_keywords(call)}, call.args)
            return inner
        return None

    # -- constants and options ------------------------------------------------------------------------

    def _constants(self) -> dict[str, float | int]:
        """Names that are assigned one number, once, at module level (also `wp.constant(16)`)."""
        found: dict[str, float | int] = {}
        seen: set[str] = set()
        for node in self.tree.body if self.tree else []:
            if isinstance(node, (ast.Assign, ast.AnnAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    pairs = [(target, node.value)]
                    if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                        pairs = list(zip(target.elts, node.value.elts))
                    for name, value in pairs:
                        if not isinstance(name, ast.Name):
                            continue
                        number = self.number(value, found)
                        if number is None or name.id in seen:
                            found.pop(name.id, None)
                        else:
                            found[name.id] = number
                        seen.add(name.id)
        return found

    def number(self, node: ast.AST | None, known: dict[str, float | int] | None = None) -> float | int | None:
        """The value of an expression of constants, or None."""
        known = self.constants if known is None else known
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, (int, float)) and not isinstance(node.value, bool) else None
        if isinstance(node, ast.Name):
            return known.get(node.id)
        if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
            name = self.warp_name(node.func) or (node.func.id if isinstance(node.func, ast.Name) else "")
            return self.number(node.args[0], known) if name in ("constant", "int", "int32", "static") else None
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self.number(node.operand, known)
            return None if value is None else -value
        if isinstance(node, ast.BinOp):
            left, right = self.number(node.left, known), self.number(node.right, known)
            return None if left is None or right is None else arithmetic(node.op, left, right)
        return None

    def _module_options(self) -> dict[str, tuple[ast.expr, ast.AST]]:
        """Options set for the whole module or globally: name -> (value, where)."""
        found: dict[str, tuple[ast.expr, ast.AST]] = {}
        for node in self.nodes:
            if isinstance(node, ast.Call) and (self.warp_name(node.func) or "").endswith("set_module_options"):
                for given in node.args[:1]:
                    if isinstance(given, ast.Dict):
                        for key, value in zip(given.keys, given.values):
                            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                                found[key.value] = (value, node)
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    name = self.warp_name(target)
                    if name and name.startswith("config."):
                        found.setdefault(name, (node.value, node))
        return found

    def option(self, function: ast.AST, name: str) -> tuple[object, ast.AST] | None:
        """The constant value of an option for one kernel, and where it is set: itself, its module."""
        known = self.compiled.get(function)
        if known and name in known.options:
            return _constant(known.options[name]), function
        inner = known.options.get("module_options") if known else None
        if isinstance(inner, ast.Dict):
            for key, value in zip(inner.keys, inner.values):
                if isinstance(key, ast.Constant) and key.value == name:
                    return _constant(value), function
        if name in self.options:
            value, where = self.options[name]
            return _constant(value), where
        return None


def arithmetic(op: ast.operator, left: float | int, right: float | int) -> float | int | None:
    """A small sum, without surprises: None where the result is not a modest number."""
    try:
        if isinstance(op, ast.Add):
            result = left + right
        elif isinstance(op, ast.Sub):
            result = left - right
        elif isinstance(op, ast.Mult):
            result = left * right
        elif isinstance(op, ast.FloorDiv):
            result = left // right
        elif isinstance(op, ast.Div):
            result = left / right
        elif isinstance(op, ast.Mod):
            result = left % right
        elif isinstance(op, ast.Pow) and abs(right) <= 64 and abs(left) <= 1e6:
            result = left**right
        else:
            return None
    except (ArithmeticError, ValueError):
        return None
    return result if isinstance(result, (int, float)) and abs(result) < 1e18 else None


def _keywords(call: ast.Call) -> dict[str, ast.expr]:
    return {k.arg: k.value for k in call.keywords if k.arg}


def _constant(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else None

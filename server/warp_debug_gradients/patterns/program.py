"""The files of one program together: what an imported name of one file is in another.

Modules are found by the end of their path (`a.b` is any scanned .../a/b.py), nearest to the importer first: no search
path is needed, and only files that were handed in can be meant.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from warp_debug_gradients.patterns.source import SourceFile

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
MOST_IMPORTS = 20  # hops of re-exported names


@dataclass(frozen=True)
class Imported:
    """What a local name of a file is bound to: a module, or a name of a module."""

    source: SourceFile
    name: str | None = None  # None: the module itself


class Program:
    """The parsed files, with their imports resolved among each other."""

    def __init__(self, sources: Iterable[SourceFile]) -> None:
        self.sources = [s for s in sources if s.tree is not None]
        self._by_tail: dict[tuple[str, ...], list[SourceFile]] = {}
        for source in self.sources:
            parts = source.path.with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            for start in range(len(parts)):
                self._by_tail.setdefault(tuple(parts[start:]), []).append(source)
        self.bindings = {id(source): self._bindings(source) for source in self.sources}
        self.definitions = {id(source): _definitions(source) for source in self.sources}
        self.enclosing = {id(source): _enclosing(source) for source in self.sources}

    def module(self, importer: SourceFile, level: int, dotted: str) -> SourceFile | None:
        """The scanned file of a module, as `importer` would import it."""
        parts = tuple(p for p in dotted.split(".") if p)
        if level:
            base = importer.path.parent
            for _ in range(level - 1):
                base = base.parent
            parts = (*base.parts, *parts)
        found = self._by_tail.get(parts, []) if parts else []
        found = [s for s in found if s is not importer] or found
        folder = importer.path.parent.parts
        return max(found, key=lambda s: _shared(s.path.parts, folder), default=None)

    def _bindings(self, source: SourceFile) -> dict[str, Imported]:
        found: dict[str, Imported] = {}
        for node in source.nodes:
            if isinstance(node, ast.Import):
                for name in node.names:
                    module = self.module(source, 0, name.name if name.asname else name.name.partition(".")[0])
                    if module:
                        found[name.asname or name.name.partition(".")[0]] = Imported(module)
            elif isinstance(node, ast.ImportFrom):
                module = self.module(source, node.level, node.module or "")
                for name in node.names:
                    dotted = f"{node.module}.{name.name}" if node.module else name.name
                    inner = self.module(source, node.level, dotted)
                    if name.name == "*" and module:
                        found[f"*{module.name}"] = Imported(module)
                    elif module and (inner is None or name.name in _top_names(module)):
                        found[name.asname or name.name] = Imported(module, name.name)
                    elif inner:
                        found[name.asname or name.name] = Imported(inner)
        return found

    def definition(self, source: SourceFile, node: ast.AST, hops: int = 0) -> tuple[SourceFile, Definition] | None:
        """The function or class that a name or dotted expression means."""
        if hops > MOST_IMPORTS:
            return None
        if isinstance(node, ast.Attribute):
            owner = self._owner(source, node.value)
            if owner:
                return self.definition(owner, ast.Name(node.attr), hops + 1)
            return None
        if not isinstance(node, ast.Name):
            return None
        own = self.definitions[id(source)].get(node.id)
        if own is not None:
            return source, own
        bindings = self.bindings[id(source)]
        bound = bindings.get(node.id)
        if bound and bound.name:
            return self.definition(bound.source, ast.Name(bound.name), hops + 1)
        for name, each in bindings.items():
            if name.startswith("*"):
                found = self.definition(each.source, node, hops + 1)
                if found:
                    return found
        return None

    def _owner(self, source: SourceFile, node: ast.AST) -> SourceFile | None:
        """The module that an expression such as `physics` or `pkg.physics` means."""
        if isinstance(node, ast.Name):
            bound = self.bindings[id(source)].get(node.id)
            return bound.source if bound and bound.name is None else None
        if isinstance(node, ast.Attribute):
            owner = self._owner(source, node.value)
            return self.module(source, 0, ast.unparse(node)) if owner else None
        return None

    def function_of(self, source: SourceFile, node: ast.AST) -> str | None:
        """The name of the function that a node stands in."""
        return self.enclosing[id(source)].get(id(node))


def _definitions(source: SourceFile) -> dict[str, Definition]:
    """Functions and classes by name, those at module level first (kernels are often made inside functions)."""
    found: dict[str, Definition] = {}
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for node in [*(source.tree.body if source.tree else []), *source.nodes]:
        if isinstance(node, kinds):
            compiled = source.compiled.get(node)
            if not (compiled and compiled.kind in ("func_grad", "func_replay")):
                found.setdefault(node.name, node)
    return found


def _enclosing(source: SourceFile) -> dict[int, str]:
    """By node: the innermost function that it is in, or that it is."""
    found: dict[int, str] = {}
    waiting: list[tuple[ast.AST, str]] = [(source.tree, "")] if source.tree else []
    while waiting:
        node, name = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            name = node.name
        if name:
            found[id(node)] = name
        waiting += [(child, name) for child in ast.iter_child_nodes(node)]
    return found


def _top_names(source: SourceFile) -> set[str]:
    names: set[str] = set()
    for node in source.tree.body if source.tree else []:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(n.asname or n.name).partition(".")[0] for n in node.names}
    return names


def _shared(path: tuple[str, ...], folder: tuple[str, ...]) -> int:
    count = 0
    for mine, theirs in zip(path, folder):
        if mine != theirs:
            break
        count += 1
    return count

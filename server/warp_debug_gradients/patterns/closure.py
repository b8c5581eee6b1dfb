"""The workspace's files that a script or module imports, found without running anything.

Not the whole tree: only what `import` statements reach. Modules that are computed at run time (plug-ins, changes of
`sys.path`) are not seen.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LARGEST_FILE = 2_000_000
MOST_FILES = 400


@dataclass(frozen=True)
class Wanted:
    """One imported name: `level` dots, the dotted module, and the names taken from it."""

    level: int
    module: str
    names: tuple[str, ...] = ()


def imports(tree: ast.AST) -> Iterator[Wanted]:
    """Every import of a file, wherever it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield Wanted(0, name.name)
        elif isinstance(node, ast.ImportFrom):
            yield Wanted(node.level, node.module or "", tuple(n.name for n in node.names))
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                text = node.args[0].value
                yield Wanted(len(text) - len(text.lstrip(".")), text.lstrip("."))


def module_file(module: str, roots: list[Path]) -> Path | None:
    """The file of a dotted module: `a.b` is a/b.py or a/b/__init__.py under a root."""
    for root in roots:
        path = root.joinpath(*module.split(".")) if module else root
        for candidate in (path / "__init__.py", path.with_suffix(".py") if module else path / "__main__.py"):
            if candidate.is_file():
                return candidate
    return None


def closure(start: list[Path], roots: list[Path], workspace: Path) -> tuple[list[Path], list[tuple[Path, str]]]:
    """The files reached from `start`, in the order found, and those left out with the reason."""
    found: list[Path] = []
    left_out: list[tuple[Path, str]] = []
    seen: set[Path] = set()
    queue = list(start)
    while queue:
        path = queue.pop(0).resolve()
        if path in seen:
            continue
        seen.add(path)
        reason = _unreadable(path, workspace, len(found))
        if reason:
            left_out.append((path, reason))
            continue
        found.append(path)
        try:
            tree = ast.parse(path.read_text(errors="replace"))
        except (SyntaxError, ValueError, RecursionError, MemoryError, OSError):
            continue  # the scan says so
        for wanted in imports(tree):
            queue += [p for p in _files(wanted, path, roots) if p.resolve() not in seen]
    return found, left_out


def _unreadable(path: Path, workspace: Path, count: int) -> str | None:
    if not path.is_relative_to(workspace):
        return "outside the workspace"
    if count >= MOST_FILES:
        return f"more than {MOST_FILES} files"
    try:
        return f"larger than {LARGEST_FILE} bytes" if path.stat().st_size > LARGEST_FILE else None
    except OSError as error:
        return str(error)


def _files(wanted: Wanted, importer: Path, roots: list[Path]) -> Iterator[Path]:
    """The files that one import may load: the packages on the way, the module, and submodules taken from it."""
    if wanted.level:
        base = importer.parent
        for _ in range(wanted.level - 1):
            base = base.parent
        roots = [base]
    parts = [p for p in wanted.module.split(".") if p]
    for depth in range(1, len(parts) + 1):
        found = module_file(".".join(parts[:depth]), roots)
        if found:
            yield found
    for name in wanted.names:
        found = module_file(".".join([*parts, name]), roots)
        if found:
            yield found
    if wanted.level and not parts:
        found = module_file("", roots)
        if found and found.name == "__init__.py":
            yield found

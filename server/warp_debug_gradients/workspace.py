"""The folder we may read and run in. Nothing outside it is opened."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from warp_debug_gradients.errors import WorkspaceError

WORKSPACE_VARIABLE = "WARP_DEBUG_GRADIENTS_WORKSPACE"
PYTHONS_VARIABLE = "WARP_DEBUG_GRADIENTS_PYTHON"  # interpreters, or folders of them, that calls of a server may name

ACTIVE = ("VIRTUAL_ENV", "CONDA_PREFIX")  # folders of the environment that the server was started in

PASSED_OVER = {"node_modules", "site-packages", "__pycache__", "venv", "env"}
MOST_FILES = 20_000  # looked at for Python files


@dataclass(frozen=True)
class Workspace:
    """The user's project folder. `root` is absolute, with symbolic links resolved.

    pythons: what a call may name as interpreter beside those inside; None: any, since a person has named it.
    """

    root: Path
    pythons: tuple[Path, ...] | None = None

    @classmethod
    def served(cls) -> Workspace:
        """The workspace of a server: its calls name no interpreters but those that its start allowed."""
        listed = [Path(p).expanduser().absolute() for p in os.environ.get(PYTHONS_VARIABLE, "").split(os.pathsep) if p]
        active = [Path(p) for name in ACTIVE if (p := os.environ.get(name))]
        own = Path(sys.executable).parent.glob("python*")
        return replace(cls.find(), pythons=(*listed, *active, *own))

    @classmethod
    def find(cls, argument: str | os.PathLike[str] | None = None) -> Workspace:
        """The folder that was named, else the one in the environment, else the current one."""
        named = argument or os.environ.get(WORKSPACE_VARIABLE) or os.getcwd()
        root = Path(named).expanduser().resolve()
        if not root.is_dir():
            raise WorkspaceError(f"The workspace {root} is not a folder. Pass --workspace with the project's folder.")
        return cls(root)

    def inside(self, path: str | os.PathLike[str], what: str) -> Path:
        """`path` as an absolute path without links, or an error if it leaves the workspace."""
        try:
            resolved = (self.root / Path(path).expanduser()).resolve()
            resolved.exists()  # raises where no file can have that name
        except (OSError, RuntimeError, ValueError) as error:  # too long, a loop of links, ~nobody, a NUL character
            raise WorkspaceError(f"The {what} {str(path)[:200]!r} cannot be a path ({error_text(error)}).") from error
        if not resolved.is_relative_to(self.root):
            raise WorkspaceError(
                f"The {what} {path} is outside the workspace {self.root}. "
                f"Pass --workspace with a folder that holds it (MCP: start the server with {WORKSPACE_VARIABLE} set)."
            )
        return resolved

    def file(self, path: str, what: str) -> Path:
        """An existing file of the workspace."""
        resolved = self.inside(path, what)
        if not resolved.is_file():
            raise WorkspaceError(f"There is no {what} {path} in the workspace {self.root}.{_similar(resolved)}")
        return resolved

    def folder(self, path: str | None, what: str) -> Path:
        """An existing folder of the workspace (its root if none is named)."""
        resolved = self.inside(path, what) if path else self.root
        if not resolved.is_dir():
            raise WorkspaceError(f"The {what} {path} is not a folder of the workspace {self.root}.")
        return resolved

    def python_files(self) -> Iterator[Path]:
        """The project's own modules, without environments and hidden folders; the first ones of a very large tree."""
        looked_at = 0
        for here, folders, names in os.walk(self.root):
            folders[:] = sorted(f for f in folders if f not in PASSED_OVER and not f.startswith("."))
            looked_at += len(names)
            if looked_at > MOST_FILES:
                return
            yield from (Path(here) / name for name in sorted(names) if name.endswith(".py"))

    def relative(self, path: str | os.PathLike[str]) -> str:
        """`path` as the user would write it: relative to the workspace, else absolute."""
        absolute = Path(path)
        for candidate in (absolute, Path(os.path.realpath(absolute))):
            if candidate.is_relative_to(self.root):
                return candidate.relative_to(self.root).as_posix()
        return str(path)


def error_text(error: Exception) -> str:
    """What the system says, without the path."""
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__)[:200]


def _similar(missing: Path) -> str:
    """A hint with the files of the same kind beside a path that is not there."""
    if not missing.parent.is_dir():
        return ""
    beside = sorted(p.name for p in missing.parent.iterdir() if p.suffix == ".py")[:5]
    return f" Beside it: {', '.join(beside)}." if beside else ""

"""The Python that runs the user's script: which one, and whether a call may name it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from warp_debug_gradients.errors import InterpreterError
from warp_debug_gradients.schemas import Interpreter
from warp_debug_gradients.workspace import PYTHONS_VARIABLE, Workspace


def choose_interpreter(workspace: Workspace, named: str | None) -> Interpreter:
    """The Python that runs the user's script, and why that one. Links are kept: a venv's python *is* a link."""
    if named:
        try:
            path = Path(named).expanduser()
        except RuntimeError as error:  # ~nobody
            raise InterpreterError(
                f"The interpreter {named[:200]!r} cannot be a path. Pass --python with its path."
            ) from error
        if os.sep not in named and not _runs(path):
            from shutil import which

            path = Path(which(named) or named)
        path = path if path.is_absolute() else workspace.root / path
        if not _runs(path):
            raise InterpreterError(
                f"The interpreter {named[:200]} is not an executable file. Pass --python with its path."
            )
        if not _allowed(workspace, path):
            raise InterpreterError(
                f"The interpreter {path} is outside the workspace {workspace.root}, and this server was not started for "
                f"it: start it with `serve --python {path}` or with {PYTHONS_VARIABLE}={path}. A .venv in the "
                "workspace is used unasked."
            )
        return Interpreter(path=str(path), why="named by the caller")
    for folder in (".venv", "venv"):
        if found := _python_of(workspace.root / folder):
            return Interpreter(path=str(found), why=f"the workspace has {folder}")
    active = os.environ.get("VIRTUAL_ENV")
    if active and (found := _python_of(Path(active))):
        return Interpreter(path=str(found), why="the active virtual environment (VIRTUAL_ENV)")
    return Interpreter(
        path=sys.executable, why="the server's own: the workspace has no .venv and no virtual environment is active"
    )


def _allowed(workspace: Workspace, path: Path) -> bool:
    """Whether a call may name it. Of its own links only the folder's are followed: a venv's python is a link."""
    if workspace.pythons is None:
        return True
    place = path.parent.resolve() / path.name
    known = [p.parent.resolve() / p.name for p in workspace.pythons]
    return place.is_relative_to(workspace.root) or any(place.is_relative_to(each) for each in known)


def _python_of(environment: Path) -> Path | None:
    for relative in ("bin/python", "Scripts/python.exe"):
        if _runs(environment / relative):
            return environment / relative
    return None


def _runs(path: Path) -> bool:
    try:
        return path.is_file() and os.access(path, os.X_OK)
    except (OSError, ValueError):  # no file can have that name
        return False

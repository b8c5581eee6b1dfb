"""The evidence folder of a run: everything behind its result, and the command that repeats it.

<workspace>/.warp-debug-gradients/runs/<id>/
    job.json        the request, the interpreter, the versions
    trace.*, ...    the probe's jobs, results and progress
    output.txt      what the script printed
    sources/        copies of the user's files that were loaded; sources.json has their sha256
    not_loaded.json sha256 of the workspace's other Python files: which of them are edited later
    result.json     the whole result
    report.md, .html  the same for people, where the operation writes one (`report RUN_ID` makes it anew)
    rerun.sh        repeats the measurement
<workspace>/.warp-debug-gradients/index.jsonl    one line a finished run
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from warp_debug_gradients.errors import EvidenceLost, WorkspaceError
from warp_debug_gradients.workspace import Workspace

HOME = ".warp-debug-gradients"
LARGEST_SOURCE = 4_000_000
MOST_NOT_LOADED = 2_000  # files with a recorded hash
SOURCE_ROOT = Path(__file__).resolve().parents[1]
# `python -m` would put the current folder first on sys.path, and a user's random.py or types.py before the standard one.
START = "import sys; sys.path[:] = [p for p in sys.path if p]; from warp_debug_gradients.cli import main; main()"


class Evidence:
    """One run's folder."""

    def __init__(self, workspace: Workspace, run_id: str) -> None:
        self.workspace = workspace
        self.run_id = run_id
        self.home = workspace.root / HOME
        self.folder = self.home / "runs" / run_id

    @classmethod
    def create(cls, workspace: Workspace, operation: str) -> Evidence:
        """A new folder whose name sorts by time."""
        stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S")
        evidence = cls(workspace, f"{stamp}-{operation.replace('_', '-')}-{secrets.token_hex(3)}")
        if not evidence.folder.resolve().is_relative_to(workspace.root):
            raise WorkspaceError(f"{evidence.home} is a link that leaves the workspace. Remove it and try again.")
        try:
            evidence.folder.mkdir(parents=True)
            ignore = evidence.home / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n")
        except OSError as error:
            raise WorkspaceError(
                f"The evidence folder {evidence.folder} cannot be made ({error}). Use a writable workspace."
            ) from error
        return evidence

    @property
    def relative(self) -> str:
        """The folder as the user would write it."""
        return self.workspace.relative(self.folder)

    def write_json(self, name: str, value: Any) -> Path:
        """Writes `name`, whole or not at all."""
        self.still_ours()
        path = self.folder / name
        partial = path.with_name(path.name + ".partial")
        partial.write_text(json.dumps(value, indent=1, allow_nan=False) + "\n")
        partial.replace(path)
        return path

    def still_ours(self) -> None:
        """The measured program may have removed the folder, or put something else in its place."""
        if not self.folder.resolve().is_relative_to(self.workspace.root):
            raise EvidenceLost(
                f"{self.home} leads out of the workspace since the script ran. Nothing is written there."
            )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EvidenceLost(
                f"The evidence folder {self.folder} cannot be written since the script ran ({error.strerror}). "
                f"Keep the script from changing {HOME}."
            ) from error

    def snapshot_sources(self, files: Iterable[str | Path]) -> None:
        """Copies the workspace's files that were loaded, with their hashes."""
        hashes: dict[str, str] = {}
        for file in sorted({Path(f) for f in files}):
            path = Path(os.path.realpath(file))
            if not path.is_relative_to(self.workspace.root) or not path.is_file():
                continue
            if path.stat().st_size > LARGEST_SOURCE:
                continue
            content = path.read_bytes()
            relative = path.relative_to(self.workspace.root)
            hashes[relative.as_posix()] = hashlib.sha256(content).hexdigest()
            copy = self.folder / "sources" / relative
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)
        self.write_json("sources.json", hashes)
        self.write_json("not_loaded.json", self._hashes_of_others(hashes))

    def _hashes_of_others(self, loaded: dict[str, str]) -> dict[str, str]:
        """Of the workspace's Python files that were not loaded."""
        hashes: dict[str, str] = {}
        for path in self.workspace.python_files():
            name = self.workspace.relative(path)
            if name not in loaded and len(hashes) < MOST_NOT_LOADED and (found := sha256(path)):
                hashes[name] = found
        return hashes

    def write_rerun(self, command: Sequence[str]) -> None:
        """`rerun.sh`: the plain command that repeats the measurement."""
        path = self.folder / "rerun.sh"
        split = command.index("--") if "--" in command else len(command)
        ours = shlex.join([sys.executable, "-c", START, *command[:split]])
        theirs = " " + shlex.join(command[split:]) if command[split:] else ""
        lines = ["#!/bin/sh", f"# Repeats {self.run_id} on the files as they are now.", *_python_path()]
        lines += [f"cd {shlex.quote(str(self.workspace.root))} || exit 70"]
        lines += [f'exec {ours} "$@"{theirs}', ""]  # more options (such as --json) may be given to rerun.sh
        path.write_text("\n".join(lines))
        path.chmod(0o755)

    @property
    def bytes(self) -> int:
        """The size of the folder."""
        return folder_size(self.folder)

    def append_index(self, entry: dict[str, Any]) -> None:
        """One line a finished run; a single write, so that concurrent runs do not mix."""
        with (self.home / "index.jsonl").open("a") as index:
            index.write(json.dumps({"run_id": self.run_id, **entry}, allow_nan=False) + "\n")


def sha256(path: Path) -> str | None:
    """Of a file's content; None where it cannot be read, or is too large for a source."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.stat().st_size <= LARGEST_SOURCE else None
    except OSError:
        return None


def folder_size(folder: Path) -> int:
    """Bytes of all files below; links are not followed, and what goes away meanwhile is not counted."""
    total = 0
    for here, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(here, name)).st_size
    return total


def finished_runs(workspace: Workspace) -> Iterator[dict[str, Any]]:
    """The index, latest first. Lines that cannot be read are passed over."""
    index = workspace.root / HOME / "index.jsonl"
    lines = index.read_text().splitlines() if index.is_file() else []
    for line in reversed(lines):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            yield entry


def read_result(workspace: Workspace, run_id: str) -> dict[str, Any] | None:
    """The stored result of an earlier run."""
    path = Evidence(workspace, run_id).folder / "result.json"
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def _python_path() -> list[str]:
    """The line that makes an uninstalled checkout importable; none where the package is installed."""
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if any(entry and Path(entry).resolve() == SOURCE_ROOT for entry in entries):
        return [f"export PYTHONPATH={shlex.quote(str(SOURCE_ROOT))}"]
    return []

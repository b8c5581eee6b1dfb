"""The user's files since the baseline: which changed, how, and which edited files the program does not load."""

from __future__ import annotations

import difflib
import json
import os
from datetime import datetime, timezone
from pathlib import Path

from warp_debug_gradients.schemas import FileChange
from warp_debug_gradients.workspace import Workspace

SHOWN = 120  # lines of the diff in the result; all of it is in the evidence
PASSED_OVER = {"node_modules", "site-packages", "__pycache__", "venv", "env"}
MOST_FILES = 20_000  # looked at, for files that were edited and are not loaded
NAMED = 5


def file_changes(before: dict[str, str], now: dict[str, str], old: Path, new: Path) -> tuple[list[FileChange], str]:
    """What became of the loaded files, from the hashes and copies of both runs; and the unified diff."""
    changes: list[FileChange] = []
    diffs: list[str] = []
    for file in sorted({*before, *now}):
        if before.get(file) == now.get(file):
            continue
        status = "changed" if file in before and file in now else "only_before" if file in before else "only_now"
        lines = list(
            difflib.unified_diff(_lines(old / file), _lines(new / file), f"a/{file}", f"b/{file}", lineterm="")
        )
        added = sum(line.startswith("+") for line in lines[2:])
        removed = sum(line.startswith("-") for line in lines[2:])
        changes.append(FileChange(file=file, status=status, added=added, removed=removed))
        diffs += lines
    return changes, "\n".join(diffs) + ("\n" if diffs else "")


def shortened(diff: str, evidence: str) -> str:
    """The diff's first lines, and where the rest is."""
    lines = diff.splitlines()
    if len(lines) <= SHOWN:
        return diff
    return "\n".join([*lines[:SHOWN], f"... {len(lines) - SHOWN} more lines: {evidence}/changes.diff", ""])


def edited_but_not_loaded(workspace: Workspace, run_id: str, loaded: dict[str, str]) -> list[str]:
    """Python files of the workspace that were written after the baseline began and that this run did not load."""
    began = datetime.strptime(run_id[:15], "%Y%m%dT%H%M%S").replace(tzinfo=timezone.utc).timestamp()
    found: list[tuple[float, str]] = []
    looked_at = 0
    for here, folders, names in os.walk(workspace.root):
        folders[:] = [f for f in folders if f not in PASSED_OVER and not f.startswith(".")]
        looked_at += len(names)
        if looked_at > MOST_FILES:
            break
        for name in names:
            path = Path(here) / name
            if path.suffix != ".py" or workspace.relative(path) in loaded:
                continue
            try:
                modified = path.stat().st_mtime
            except OSError:
                continue
            if modified > began + 1.0:
                found.append((modified, workspace.relative(path)))
    return [name for _, name in sorted(found, reverse=True)[:NAMED]]


def read_hashes(folder: Path) -> dict[str, str]:
    """sources.json of a run."""
    try:
        return json.loads((folder / "sources.json").read_text())
    except (OSError, ValueError):
        return {}


def _lines(path: Path) -> list[str]:
    return path.read_text(errors="replace").splitlines() if path.is_file() else []

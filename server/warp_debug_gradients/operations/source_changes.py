"""The user's files since the baseline: which changed, how, and which edited files the program does not load."""

from __future__ import annotations

import difflib
import json
from datetime import datetime, timezone
from pathlib import Path

from warp_debug_gradients.evidence import sha256
from warp_debug_gradients.operations.baseline import RecordedCheck
from warp_debug_gradients.schemas import FileChange
from warp_debug_gradients.workspace import Workspace

SHOWN = 120  # lines of the diff in the result; all of it is in the evidence
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


def edited_but_not_loaded(workspace: Workspace, baseline: RecordedCheck, loaded: dict[str, str]) -> list[str]:
    """Python files of the workspace that were edited after the baseline and that this run did not load: those whose content
    is not what the baseline recorded; where it recorded none, those written since."""
    run_id, contents = baseline.run_id, {**baseline.not_loaded, **baseline.sources}
    began = datetime.strptime(run_id[:15], "%Y%m%dT%H%M%S").replace(tzinfo=timezone.utc).timestamp()
    found: list[tuple[float, str]] = []
    for path in workspace.python_files():
        name = workspace.relative(path)
        if name in loaded:
            continue
        try:
            modified = path.stat().st_mtime
        except OSError:
            continue
        if sha256(path) != contents[name] if name in contents else modified > began + 1.0:
            found.append((modified, name))
    return [name for _, name in sorted(found, reverse=True)[:NAMED]]


def read_hashes(folder: Path) -> dict[str, str]:
    """sources.json of a run."""
    try:
        return json.loads((folder / "sources.json").read_text())
    except (OSError, ValueError):
        return {}


def _lines(path: Path) -> list[str]:
    return path.read_text(errors="replace").splitlines() if path.is_file() else []

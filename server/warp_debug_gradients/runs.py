"""The runs in a workspace's evidence folder: which there are, how large they are, which could go.

Nothing is removed by itself. Above the limit the oldest runs are *offered*; `remove` takes what the caller names.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warp_debug_gradients.errors import UsageError
from warp_debug_gradients.evidence import HOME, finished_runs, folder_size
from warp_debug_gradients.workspace import Workspace

LIMIT_BYTES = 500_000_000
RUN_ID = re.compile(r"\d{8}T\d{6}-[a-z-]+-[0-9a-f]{6}")
RECORDS = {".json", ".jsonl", ".md", ".html", ".txt", ".diff", ".sh"}
OFFERED = 20  # runs named at once


@dataclass(frozen=True)
class Run:
    """One run's folder, and its line in the index (None of it where the run did not finish)."""

    run_id: str
    folder: Path
    size: int
    entry: dict[str, Any]

    def row(self) -> dict[str, Any]:
        """As JSON."""
        names = ("operation", "status", "verdict", "reason", "outcome", "script", "module", "forward")
        finished = {k: self.entry[k] for k in names if self.entry.get(k) is not None}
        return {"run_id": self.run_id, "bytes": self.size, **({"status": "unfinished"} | finished)}


def all_runs(workspace: Workspace) -> list[Run]:
    """Every run's folder, oldest first: by the second in the name, within it by when job.json was written."""
    home = workspace.root / HOME / "runs"
    entries = {e.get("run_id"): e for e in finished_runs(workspace)}
    folders = [f for f in home.iterdir() if is_run(f)] if home.is_dir() else []
    return [Run(f.name, f, folder_size(f), entries.get(f.name, {})) for f in sorted(folders, key=_age)]


def _age(folder: Path) -> tuple[str, int]:
    return folder.name.partition("-")[0], (folder / "job.json").stat().st_mtime_ns


def is_run(folder: Path) -> bool:
    """Whether this is a folder that we made: its name, its job.json, and no link."""
    return bool(
        RUN_ID.fullmatch(folder.name)
        and folder.is_dir()
        and not folder.is_symlink()
        and (folder / "job.json").is_file()
    )


def find_run(workspace: Workspace, run_id: str) -> Path:
    """The folder of a run, or an error that says which there are."""
    folder = workspace.root / HOME / "runs" / run_id
    if RUN_ID.fullmatch(run_id) and is_run(folder):
        return folder
    known = [run.run_id for run in all_runs(workspace)][-5:]
    listed = f"The latest are: {', '.join(reversed(known))}." if known else "There is none yet."
    raise UsageError(f"There is no run {run_id!r} in {workspace.root / HOME}. {listed}")


def removable(runs: list[Run], limit: int = LIMIT_BYTES) -> list[Run]:
    """The oldest runs without which the folder would be within the limit; the latest run always stays."""
    excess = sum(run.size for run in runs) - limit
    offered: list[Run] = []
    for run in runs[:-1]:
        if excess <= 0:
            break
        offered.append(run)
        excess -= run.size
    return offered


def offer(workspace: Workspace) -> str | None:
    """What to say where the evidence has grown above the limit."""
    runs = all_runs(workspace)
    offered = removable(runs)
    if not offered:
        return None
    names = " ".join(f"--remove {run.run_id}" for run in offered[:OFFERED])
    return (
        f"The evidence has grown to {megabytes(sum(r.size for r in runs))} (limit {megabytes(LIMIT_BYTES)}). Nothing is "
        f"removed by itself; the oldest runs could go with: warp-debug-gradients runs {names}"
    )


def remove(workspace: Workspace, run_ids: Iterable[str]) -> list[Run]:
    """Deletes the folders of the named runs, all or (if one of them is unknown) none."""
    folders = [find_run(workspace, run_id) for run_id in run_ids]
    gone = [Run(f.name, f, folder_size(f), {}) for f in folders]
    for folder in folders:
        shutil.rmtree(folder)
    return gone


def read_record(workspace: Workspace, run_id: str, name: str) -> str:
    """A text file of a run's folder; nothing else can be read by this."""
    folder = find_run(workspace, run_id)
    path = folder / name
    records = sorted(p.name for p in folder.iterdir() if p.suffix in RECORDS and p.is_file() and not p.is_symlink())
    if name not in records:
        raise UsageError(f"The run {run_id} has no record {name!r}. It has: {', '.join(records)}.")
    return path.read_text(errors="replace")


def megabytes(size: int) -> str:
    """A size for people."""
    return f"{size / 1e6:.1f} MB"

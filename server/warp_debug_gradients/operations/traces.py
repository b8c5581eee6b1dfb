"""The trace of an earlier call in this process, where the run would be the same: nothing that it read has changed.

The program is measured anew in every call. Only the run that watches is spared, and the answer says so. What a run
draws from the clock or from unseeded random numbers differs between any two runs, be they a second apart.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warp_debug_gradients.environment import probe_environment
from warp_debug_gradients.probe.inputs import identity
from warp_debug_gradients.records import part

MOST_KEPT = 64  # programs
LONGEST_S = 3600.0  # a trace that is older is made anew


@dataclass(frozen=True)
class Kept:
    """One trace: where it lies, what it read, how long it might have taken."""

    folder: Path
    inputs: dict[str, Any]
    complete: bool
    budget_s: float
    at: float


_kept: dict[str, Kept] = {}


def key_of(job: dict[str, Any], interpreter: str) -> str:
    """What has to be equal for two runs to be the same, besides the files. Never written anywhere."""
    same = {k: v for k, v in job.items() if k != "evidence"}
    environment = probe_environment(job.get("env") or ())
    return json.dumps([interpreter, same, environment], sort_keys=True, default=str)


def remember(key: str, folder: Path, trace: dict[str, Any], budget_s: float) -> None:
    """Keep a trace for later calls, if what it depends on is known."""
    inputs = part(trace, "inputs")
    usable = trace.get("status") == "completed" or trace.get("stopped_because") == "budget"
    if not usable or not inputs or inputs.get("unknown"):
        _kept.pop(key, None)
        return
    while len(_kept) >= MOST_KEPT:
        _kept.pop(next(iter(_kept)))
    _kept[key] = Kept(folder, inputs, trace.get("status") == "completed", budget_s, time.monotonic())


def recall(key: str, budget_s: float) -> Kept | None:
    """The trace of the same run; None where there is none, or something that it read may have changed since it began."""
    kept = _kept.get(key)
    if kept is None or time.monotonic() - kept.at > LONGEST_S or not (kept.folder / "trace.json").is_file():
        return None
    if not kept.complete and budget_s > kept.budget_s:
        return None  # with more time it gets further
    began = kept.inputs["began_ns"]
    for path, known in kept.inputs["files"].items():
        found = identity(path)
        if found != (tuple(known) if known else None) or (found is not None and found[2] >= began):
            return None
    return kept

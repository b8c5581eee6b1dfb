"""The baseline of a repair: an earlier check that disagreed, as its evidence recorded it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from warp_debug_gradients.errors import UsageError
from warp_debug_gradients.evidence import HOME, finished_runs
from warp_debug_gradients.records import Check, Ledger, Trace, part, parts, read_json
from warp_debug_gradients.runs import find_run
from warp_debug_gradients.schemas import VerifyFixRequest
from warp_debug_gradients.workspace import Workspace

CHECKING = ("diagnose", "gradcheck_full_horizon")  # taken by default; others that hold a check can be named
SETTINGS = (
    "script", "module", "forward", "inputs", "args", "cwd", "device", "overrides", "parameter", "objective",
    "iteration", "engine", "env",
)  # fmt: skip


class BaselineError(UsageError):
    """There is no baseline, or what is asked for is not what it measured."""

    code = "baseline"


@dataclass(frozen=True)
class RecordedCheck:
    """A run's evidence, read back."""

    run_id: str
    operation: str
    folder: Path
    request: dict[str, Any]
    interpreter: str
    trace: Trace
    checks: list[Check]
    options: dict[str, Any]
    sources: dict[str, str]
    not_loaded: dict[str, str]

    @property
    def headline(self) -> Check:
        """The check that the baseline's answer was about: the first that disagrees."""
        return next(c for c in self.checks if c["verdict"] == "disagree")

    @property
    def ledger(self) -> Ledger | None:
        """The first ledger of this run, if it kept one."""
        kept = parts(read_json(self.folder / "ledger.json"), "ledgers")
        return kept[0] if kept else None

    @property
    def result(self) -> dict[str, Any]:
        """What the run answered."""
        return read_json(self.folder / "result.json")

    @property
    def output(self) -> str:
        """What the script printed while it was watched."""
        path = self.folder / "output.txt"
        return path.read_text(errors="replace") if path.is_file() else ""


def find_baseline(workspace: Workspace, run_id: str | None) -> RecordedCheck:
    """The named run, or the latest check that disagreed."""
    if run_id is None:
        run_id = next((e["run_id"] for e in finished_runs(workspace) if _usable(workspace, e)), None)
    if run_id is None:
        raise BaselineError(
            f"There is no check that disagreed in {workspace.root / HOME}, so there is nothing that a repair could be "
            "compared with. Run gradcheck_full_horizon on the broken program first (git stash brings it back)."
        )
    found = read_run(find_run(workspace, run_id))
    if found.operation == "verify_fix":  # a repair that is tried again: against what it was compared with
        earlier = part(found.result, "baseline").get("run_id")
        if earlier:
            return find_baseline(workspace, earlier)
    if not found.checks:
        raise BaselineError(f"The run {run_id} ({found.operation}) holds no gradient check. Name one that does.")
    if not any(c["verdict"] == "disagree" for c in found.checks):
        verdicts = ", ".join(sorted({str(c["verdict"]) for c in found.checks}))
        raise BaselineError(
            f"The run {run_id} measured no wrong gradient (it says: {verdicts}), so there is no fault to be repaired. "
            "Name a run that disagreed, or leave the baseline out to take the latest one."
        )
    return found


def _usable(workspace: Workspace, entry: dict[str, Any]) -> bool:
    folder = workspace.root / HOME / "runs" / str(entry.get("run_id"))
    return entry.get("operation") in CHECKING and entry.get("verdict") == "disagree" and folder.is_dir()


def read_run(folder: Path) -> RecordedCheck:
    """The evidence folder of any run."""
    job = read_json(folder / "job.json")
    return RecordedCheck(
        run_id=folder.name,
        operation=str(job.get("operation")),
        folder=folder,
        request=part(job, "request"),
        interpreter=str(part(job, "interpreter").get("path") or ""),
        trace=cast(Trace, read_json(folder / "trace.json")),
        checks=parts(read_json(folder / "evaluate.json"), "checks"),
        options=part(read_json(folder / "evaluate.job.json"), "options"),
        sources=read_json(folder / "sources.json"),
        not_loaded=read_json(folder / "not_loaded.json"),
    )


def settle_request(request: VerifyFixRequest, baseline: RecordedCheck) -> VerifyFixRequest:
    """The baseline's own settings with this call's time; refuses where this call states others."""
    recorded = {name: baseline.request[name] for name in SETTINGS if name in baseline.request}
    default = VerifyFixRequest.model_validate({})
    stated = {name: getattr(request, name) for name in SETTINGS}
    different = [
        f"{name}: {stated[name]!r} here, {recorded.get(name, getattr(default, name))!r} in the baseline"
        for name in SETTINGS
        if stated[name] != getattr(default, name) and stated[name] != recorded.get(name, getattr(default, name))
    ]
    if different:
        raise BaselineError(
            f"Not compared: this call is not what the baseline {baseline.run_id} measured. {'; '.join(different)}. "
            "Leave these out to repeat the baseline's settings, or make a new baseline with gradcheck_full_horizon."
        )
    own = {"baseline": baseline.run_id, "workflow": request.workflow, "timeout_s": request.timeout_s}
    python = request.python or baseline.request.get("python") or baseline.interpreter or None
    return VerifyFixRequest.model_validate({**recorded, **own, "python": python})


def earlier_ledger(workspace: Workspace, baseline: RecordedCheck) -> RecordedCheck | None:
    """A run that kept the ledger of the baseline's program: the same files, the same request."""
    if baseline.ledger:
        return baseline
    for entry in finished_runs(workspace):
        folder = workspace.root / HOME / "runs" / str(entry.get("run_id"))
        if entry.get("operation") not in ("bisect_steps", "enable_tracker", "diagnose") or not folder.is_dir():
            continue
        found = read_run(folder)
        same = all(found.request.get(k) == baseline.request.get(k) for k in ("script", "module", "args", "overrides"))
        if same and found.sources == baseline.sources and found.ledger:
            return found
    return None

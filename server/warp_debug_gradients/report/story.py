"""What a report says, in order: the answer, the root cause, the evidence, what was clean, what was not looked at."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warp_debug_gradients.catalogue import CATALOGUE
from warp_debug_gradients.records import Ledger, part, parts, read_json
from warp_debug_gradients.report import tables
from warp_debug_gradients.report.tables import Table

TITLES = {
    "agree": "The gradient is right",
    "disagree": "The gradient is wrong",
    "inconclusive": "Not decided",
    "fixed": "Fixed",
    "not_fixed": "Not fixed",
    "improved_but_wrong": "Improved, but still wrong",
    "masked": "Masked: no proven repair",
    "regressed": "Regressed",
    "blocked": "The program does not run",
    "timeout": "Out of time",
    "failed": "Failed",
}
GOOD, BAD = (
    {"agree", "fixed"},
    {"disagree", "not_fixed", "improved_but_wrong", "masked", "regressed", "blocked", "failed"},
)
TOP_CAUSES = 4


@dataclass(frozen=True)
class Records:
    """The JSON of one run."""

    folder: Path
    result: dict[str, Any]
    job: dict[str, Any]
    trace: dict[str, Any]
    checks: list[dict[str, Any]]
    ledger: Ledger


@dataclass(frozen=True)
class Picture:
    """A drawing: `inline` takes the page's colour of text, `standalone` is a file of its own."""

    section: str
    file: str
    caption: str
    inline: str
    standalone: str


@dataclass
class Section:
    """A heading and what is under it."""

    title: str
    paragraphs: list[str] = field(default_factory=list[str])
    points: list[str] = field(default_factory=list[str])
    tables: list[Table] = field(default_factory=list[Table])
    pictures: list[Picture] = field(default_factory=list[Picture])
    diff: str = ""
    command: str = ""

    def __bool__(self) -> bool:
        return bool(self.paragraphs or self.points or self.tables or self.pictures or self.diff or self.command)


@dataclass
class Story:
    """The whole report."""

    title: str
    tone: str  # good, bad or unsure
    message: str
    facts: list[tuple[str, str]]
    sections: list[Section]


def read_records(folder: Path) -> Records:
    """Reads what is there."""
    ledgers = parts(read_json(folder / "ledger.json"), "ledgers") or [{}]
    return Records(
        folder=folder,
        result=read_json(folder / "result.json"),
        job=read_json(folder / "job.json"),
        trace=read_json(folder / "trace.json"),
        checks=parts(read_json(folder / "evaluate.json"), "checks"),
        ledger=ledgers[0],
    )


def tell(records: Records, pictures: list[Picture]) -> Story:
    """The report's contents."""
    r = records.result
    answer = r["status"] if r.get("status") != "completed" else r.get("outcome") or r.get("verdict") or "completed"
    tone = "good" if answer in GOOD else "bad" if answer in BAD else "unsure"
    sections = [
        _root_cause(r),
        _comparison(r),
        Section("The evidence", tables=tables.measurements(r)),
        _program(r),
        Section("What was edited", tables=tables.files(r), diff=r.get("diff") or ""),
        Section("The script's own numbers", paragraphs=_workflow(r), tables=tables.series(r)),
        Section("What was found clean", points=list(parts(r, "ruled_out"))),
        Section("What was not looked at", points=list(parts(r, "blind_spots"))),
        Section("Notes", points=list(parts(r, "notes"))),
        _next(r),
        _documentation(r),
        _records(records),
    ]
    for section in sections:
        section.pictures = [p for p in pictures if p.section == section.title]
    return Story(
        TITLES.get(answer, "Measured"), tone, r.get("message") or "", _facts(records), [s for s in sections if s]
    )


def _facts(records: Records) -> list[tuple[str, str]]:
    r, request = records.result, part(records.job, "request")
    target = request.get("script") or request.get("module") or request.get("forward") or "?"
    overrides = ", ".join(f"{k} = {v}" for k, v in part(request, "overrides").items())
    facts = [
        ("Program", " ".join([str(target), *parts(request, "args")])),
        ("Overrides", overrides),
        ("Parameter", r.get("parameter")),
        ("Objective", r.get("objective")),
        ("Iteration", r.get("iteration")),
        ("Measured by", f"{r.get('operation')}, run {r.get('run_id')}"),
        ("Compared with", part(r, "baseline").get("run_id")),
        ("Warp", f"{r.get('warp_version') or '?'} on {r.get('device') or '?'}"),
    ]
    return [(name, str(value)) for name, value in facts if value not in (None, "")]


def _root_cause(r: dict[str, Any]) -> Section:
    """The causes, the first one in full. After a repair: what was wrong before, and what is left."""
    before, now = parts(r, "causes_before"), parts(r, "causes")
    section = Section("Root cause")
    for head, causes in (
        ("Before the edit: " if "causes_before" in r else "", before),
        ("Left now: " if "causes_before" in r else "", now),
    ):
        for cause in causes[:TOP_CAUSES]:
            section.points.append(head + _cause(cause))
            section.points += [f"— {sentence}" for sentence in parts(cause, "evidence")]
            if cause.get("repair"):
                section.points.append(f"— Repair: {cause['repair']}")
    return section


def _cause(cause: dict[str, Any]) -> str:
    kind = CATALOGUE.get(cause["code"])
    meaning = f": {kind.meaning}" if kind else ""
    where = tables.place(cause)
    names = ", ".join(parts(cause, "variables"))
    kernel = f", kernel {cause['kernel']}" if cause.get("kernel") else ""
    return f"{cause['code']} ({cause['confidence']}){f' at {where}' if where else ''}{kernel}{f', {names}' if names else ''}{meaning}."


def _comparison(r: dict[str, Any]) -> Section:
    return (
        Section("Before and after", tables=tables.before_and_after(r))
        if "outcome" in r
        else Section("Before and after")
    )


def _program(r: dict[str, Any]) -> Section:
    """Whether the program is the same, the gradient aside."""
    section = Section("Changes of the program, other than of its gradient")
    if "outcome" in r:
        section.points = [
            f"{'An agreement proves nothing by this: ' if c.get('masks') else ''}{c['message']}."
            for c in parts(r, "changes")
        ]
    return section


def _workflow(r: dict[str, Any]) -> list[str]:
    flow = part(r, "workflow")
    return [f"{flow['command']}: {flow['message']}"] if flow.get("message") else []


def _next(r: dict[str, Any]) -> Section:
    call = r.get("next")
    if not call:
        return Section("Next")
    return Section(
        "Next",
        paragraphs=[str(call.get("why") or "")],
        command=f"{call['tool']} {json.dumps(part(call, 'arguments'))}",
    )


def _documentation(r: dict[str, Any]) -> Section:
    codes = dict.fromkeys(c["code"] for when in ("causes", "causes_before") for c in parts(r, when))
    points = [
        f"{code}: section {CATALOGUE[code].section} of references/quick-checks.md; in Warp's user guide: {CATALOGUE[code].documentation}."
        for code in codes
        if code in CATALOGUE
    ]
    return Section("Documentation", points=points)


def _records(records: Records) -> Section:
    """The files behind the report, the versions, and how to repeat it."""
    r, job, trace = records.result, records.job, records.trace
    files = sorted(p for p in records.folder.rglob("*") if p.is_file() and not p.name.startswith("report."))
    rows = [[p.relative_to(records.folder).as_posix(), f"{p.stat().st_size:,} bytes"] for p in files]
    versions = {
        "Warp": trace.get("warp_version") or r.get("warp_version"),
        "Python of the program": trace.get("python_version"),
        "NumPy": trace.get("numpy_version"),
        "interpreter": part(r, "interpreter").get("path"),
        **part(job, "versions"),
        "platform": job.get("platform"),
    }
    listed = "; ".join(f"{name} {value}" for name, value in versions.items() if value)
    return Section(
        "Evidence and versions",
        paragraphs=[f"Versions: {listed}.", "Repeated without an agent by:"],
        command=f"sh {r.get('evidence')}/rerun.sh",
        tables=[Table("Files", ["file", "size"], rows)],
    )

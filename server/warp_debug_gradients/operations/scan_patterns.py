"""scan_patterns: known patterns in the user's files, from their source alone. No interpreter, no Warp, nothing is run."""

from __future__ import annotations

import time
from pathlib import Path

from warp_debug_gradients.errors import UsageError, WorkspaceError
from warp_debug_gradients.evidence import Evidence
from warp_debug_gradients.operations.measurement import job_record, store
from warp_debug_gradients.patterns import STRONG, Hit, Scan, all_patterns, examine
from warp_debug_gradients.patterns.closure import closure, module_file
from warp_debug_gradients.schemas import (
    NextCall,
    PatternHit,
    RelatedPlace,
    ScanPatternsRequest,
    ScanPatternsResult,
    SkippedFile,
)
from warp_debug_gradients.worker import OnProgress
from warp_debug_gradients.workspace import Workspace

OPERATION = "scan_patterns"
BLIND_SPOTS = [
    "Nothing was run or measured: a hit is a lead, and no hit does not mean that the gradient is right.",
    "Imports that are computed at run time, and what other packages do inside, are not seen.",
    "A formula that is wrong (in a custom gradient, in the model) looks like any other formula.",
]


async def scan_patterns(
    request: ScanPatternsRequest, workspace: Workspace, on_progress: OnProgress | None = None
) -> ScanPatternsResult:
    """Reads the program's files and reports what was recognised in them."""
    started = time.monotonic()
    start, roots = _start(request, workspace)
    evidence = Evidence.create(workspace, OPERATION)
    evidence.write_json("job.json", job_record(OPERATION, request, workspace))
    evidence.write_rerun(_command(request, workspace))
    files, left_out = closure([start], roots, workspace.root)
    evidence.snapshot_sources(files)
    scan = examine(files, workspace.root)
    result = build_result(request, workspace, evidence, scan)
    result.skipped += [SkippedFile(file=workspace.relative(p), reason=reason) for p, reason in left_out]
    result.elapsed_s = round(time.monotonic() - started, 3)
    store(evidence, request, result)
    return result


def build_result(
    request: ScanPatternsRequest, workspace: Workspace, evidence: Evidence, scan: Scan
) -> ScanPatternsResult:
    """The scan as the operation's result."""
    hits = [pattern_hit(h) for h in scan.hits]
    return ScanPatternsResult(
        run_id=evidence.run_id,
        operation=OPERATION,
        evidence=evidence.relative,
        status="completed",
        verdict=None,
        reason=None,
        message=_message(scan),
        hits=hits,
        scanned=scan.scanned,
        skipped=[SkippedFile(file=f, reason=r) for f, r in scan.skipped],
        kernels=scan.kernels,
        patterns=len(all_patterns()),
        notes=list(scan.notes),
        blind_spots=BLIND_SPOTS,
        next=NextCall(
            tool="gradcheck_full_horizon",
            arguments=request.model_dump(exclude_defaults=True),
            why="Measures whether the gradient is wrong at all; only then does a lead matter.",
        ),
    )


def pattern_hit(found: Hit) -> PatternHit:
    """A hit as part of a result."""
    return PatternHit(
        file=found.file,
        line=found.line,
        code=found.code,
        pattern=found.pattern.name,
        likelihood="strong" if found.likelihood == STRONG else "weak",
        source=found.construct,
        detail=found.detail,
        variable=found.variable,
        function=found.function,
        why=found.pattern.why,
        harmless=found.pattern.harmless,
        repair=found.pattern.repair,
        quick_check=found.pattern.section,
        related=[RelatedPlace(file=s.file, line=s.line, what=s.what) for s in found.related],
    )


def _message(scan: Scan) -> str:
    strong = sum(h.likelihood == STRONG for h in scan.hits)
    weak = len(scan.hits) - strong
    looked = f"{len(scan.scanned)} file(s), {scan.kernels} kernel(s)"
    if not scan.scanned:
        return "No file could be read; see what was skipped."
    if not scan.hits:
        return f"No known pattern in {looked}. That does not make the gradient right."
    return f"{strong} strong and {weak} weak lead(s) in {looked}. A hit is a lead, never a verdict: measure."


def _start(request: ScanPatternsRequest, workspace: Workspace) -> tuple[Path, list[Path]]:
    """The first file, and the folders that imports are looked up in."""
    named = [k for k in ("script", "module", "forward") if getattr(request, k)]
    if len(named) != 1:
        raise UsageError(
            f"Name exactly one of script, module and forward; the request has {', '.join(named) or 'none'}."
        )
    cwd = workspace.folder(request.cwd, "working folder")
    roots = [cwd, workspace.root, workspace.root / "src"]
    if request.module:
        found = module_file(request.module, roots)
        package = found.parent / "__main__.py" if found and found.name == "__init__.py" else None
        if found is None:
            raise WorkspaceError(f"There is no module {request.module} in the workspace {workspace.root}.")
        return (package if package and package.is_file() else found), roots
    text = request.script or (request.forward or "").rpartition(":")[0] or (request.forward or "")
    path = workspace.file(text, "script")
    return path, [path.parent, *roots]


def _command(request: ScanPatternsRequest, workspace: Workspace) -> list[str]:
    command = ["scan-patterns", *([request.script] if request.script else []), "--workspace", str(workspace.root)]
    for name in ("module", "forward", "cwd"):
        if getattr(request, name):
            command += [f"--{name}", getattr(request, name)]
    return command

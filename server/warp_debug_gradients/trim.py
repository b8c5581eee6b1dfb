"""A result small enough for an agent to read; the whole of it is in the evidence (result.json)."""

from __future__ import annotations

from typing import TypeVar

from warp_debug_gradients.schemas import (
    BisectStepsResult,
    Detail,
    EnableTrackerResult,
    GradcheckResult,
    Result,
    RunReproResult,
    ScanPatternsResult,
)

R = TypeVar("R", bound=Result)
ITERATIONS, ELEMENTS, LIST, JUMPS = 8, 8, 12, 6


def trimmed(result: R, detail: Detail) -> R:
    """A copy with long lists cut, which its notes say. With detail 'full' the result itself."""
    if detail == "full":
        return result
    copy = result.model_copy(deep=True)
    cut: list[str] = []

    def keep(name: str, items: list[object], most: int) -> None:
        if len(items) > most:
            cut.append(f"{name} ({most} of {len(items)})")
            del items[most // 2 : most // 2 - most]  # the first and the last ones stay

    def first(name: str, items: list[object], most: int) -> None:
        if len(items) > most:  # sorted: the most telling come first
            cut.append(f"{name} ({most} of {len(items)})")
            del items[most:]

    if isinstance(copy, RunReproResult):
        keep("iterations", copy.iterations, ITERATIONS)  # type: ignore[arg-type]
        for name in ("parameters", "leaves", "objectives", "shrink", "metrics"):
            keep(name, getattr(copy, name), LIST)
    if isinstance(copy, GradcheckResult):
        keep("checks", copy.checks, LIST)  # type: ignore[arg-type]
        keep("windows", copy.windows, LIST)  # type: ignore[arg-type]
        if copy.gradient:
            keep("elements", copy.gradient.elements, ELEMENTS)  # type: ignore[arg-type]
    if isinstance(copy, (EnableTrackerResult, BisectStepsResult)):
        first("overwrites", copy.overwrites, JUMPS)  # type: ignore[arg-type]
        first("observations", copy.observations, JUMPS)  # type: ignore[arg-type]
    if isinstance(copy, EnableTrackerResult):
        first("warnings", copy.warnings, JUMPS)  # type: ignore[arg-type]
    if isinstance(copy, BisectStepsResult):
        first("jumps", copy.jumps, JUMPS)  # type: ignore[arg-type]
        keep("points", copy.points, LIST)  # type: ignore[arg-type]
    if isinstance(copy, ScanPatternsResult):
        first("hits", copy.hits, LIST)  # type: ignore[arg-type]
        first("scanned", copy.scanned, LIST)  # type: ignore[arg-type]
    first("causes", copy.causes, JUMPS)  # type: ignore[arg-type]
    if cut:
        copy.notes.append(f"Cut here: {', '.join(cut)}. All of it: detail='full', or {copy.evidence}/result.json.")
    return copy

"""A result small enough for an agent to read; the whole of it is in the evidence (result.json)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import JsonValue

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
MOST = 5600  # characters of a concise answer: with the note about what was cut, under 1,500 tokens
HEADLINE = {"verdict", "reason", "error", "next"}  # kept where they are null, too: that says something
KEPT = {"notes", "shape", "bounds"}
DIGITS = 6
NO_LIST: tuple[str, list[Any]] = ("", [])


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


def payload(result: Result, detail: Detail) -> dict[str, Any]:
    """The structured answer. Unless all is asked for: without empty fields, numbers with six digits, and lists cut,
    the bulkiest first, until it fits; its notes say which."""
    whole = trimmed(result, detail).model_dump(mode="json")
    if detail == "full":
        return whole
    short: dict[str, Any] = {k: _compact(v) for k, v in whole.items() if not _empty(v) or k in HEADLINE}
    lengths: dict[str, tuple[int, int]] = {}
    while len(json.dumps(short)) > MOST:
        name, items = max(_lists(short), key=_bulk, default=NO_LIST)
        if not items:
            break
        left = len(items) // 2
        lengths[name] = (left, max(len(items), lengths.get(name, (0, 0))[1]))
        del items[left:]
    if lengths:
        said = ", ".join(f"{name} ({left} of {all_})" for name, (left, all_) in lengths.items())
        note = f"Cut here to fit: {said}. All of it: detail='full', or {result.evidence}/result.json."
        short["notes"] = [*short.get("notes", []), note]
    return short


def _bulk(found: tuple[str, list[Any]]) -> float:
    """Characters of a list; causes are worth four times what else there is."""
    return len(json.dumps(found[1])) / (4 if found[0] == "causes" else 1)


def _compact(value: JsonValue) -> JsonValue:
    """Without empty fields; numbers with six digits."""
    if isinstance(value, dict):
        return {k: _compact(v) for k, v in value.items() if not _empty(v)}
    if isinstance(value, list):
        return [_compact(v) for v in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _empty(value: JsonValue) -> bool:
    return value is None or value in ([], {})


def _lists(value: JsonValue, name: str = "") -> Iterator[tuple[str, list[Any]]]:
    """Every list that may be cut, with its name; of the causes the first stays."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _lists(inner, key)
    elif isinstance(value, list) and value and name not in KEPT:
        if len(value) > (name == "causes"):
            yield name, value
        for inner in value:
            yield from _lists(inner, name)

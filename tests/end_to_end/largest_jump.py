"""Is the largest entry of a ledger the fault? Pure: the result of bisect_steps and the truth in, hit or miss out.

A launch is the faulty one if its line, that of a call of the host function it stands in, a line of its kernel's source (or
of a function that the kernel calls), the line of a write that spoils what its adjoint reads, or of an array that loses the
adjoint, is among the truth's. Faults that no launch puts in have terms of their own: the seed, what was left in the
buffers, what comes in from before the tape, operations that an earlier recording left on it.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NEAR = 3  # lines
TERMS = {
    "seed": {"seed_mismatch", "unrecorded_operation", "host_round_trip", "tape_scope"},
    "stale": {"stale_gradient", "double_count", "tape_scope"},
    "truncated": {"truncation", "unrecorded_operation", "host_round_trip"},
}
NO_JUMP = {
    "chaotic_horizon": "differences have no meaning",
    "does_not_run": "there is no gradient",
    "nonsmooth_choice": "a kink: one of two slopes",
    "piecewise_constant": "zero is right",
    "precision_floor": "right up to round-off",
    "stochastic_forward": "another objective at every run",
    "unconverged_solver": "the gradient is right",
}
EARLIER = "operations of an earlier recording"
OUTSIDE = {"stale_gradient", "double_count", "truncation", "seed_mismatch"}  # may lie past the tape's backward call


@dataclass(frozen=True)
class Entry:
    """What of a ledger stands out most. kind: 'seed', 'stale', 'truncated', 'nonfinite' or that of the jump."""

    kind: str
    share: float
    noise: float
    row: dict[str, Any]

    def __str__(self) -> str:
        place = f" {Path(self.row['file']).name}:{self.row['line']}" if self.row.get("file") else ""
        variable = f" {self.row['variable']}" if self.row.get("variable") else ""
        return f"{self.kind}{place}{variable}"


def significant(ledger: dict[str, Any]) -> list[Entry]:
    """Everything that stands out of its noise, the largest first. A non-finite adjoint is larger than anything."""
    found = []
    if ledger.get("nonfinite"):
        found.append(Entry("nonfinite", math.inf, 0.0, ledger["nonfinite"]))
    rows = [(j["kind"], j) for j in ledger.get("jumps") or []]
    rows += [("stretch", s) for s in ledger.get("stretches") or []]
    rows += [("seed", ledger["seed"])] if ledger.get("seed") else []
    rows += [(kind, t) for kind in ("stale", "truncated") for t in ledger.get(kind) or []]
    for kind, row in rows:
        if row.get("significant"):
            found.append(Entry(kind, float(row["share"]), float(row["noise"]), row))
    return sorted(found, key=lambda e: -abs(e.share))


def is_fault(entry: Entry, ledger: dict[str, Any], cause: str, lines: set[tuple[str, int]], folder: Path) -> bool:
    """Whether this entry is the truth's fault. lines: (file name, line) of the truth."""
    if entry.kind in TERMS:
        return cause in TERMS[entry.kind]
    if entry.kind == "adjoint" and not entry.row.get("file"):
        return cause == "double_count" and entry.row.get("kernel") == EARLIER
    places = list(_places(entry.row))
    for row in ledger.get("overwrites") or []:
        reader = row.get("reader") or {}
        if (reader.get("file"), reader.get("line")) == (entry.row.get("file"), entry.row.get("line")):
            places += [*_places(row.get("writer") or {}), *_places(row)]
    near = any(name == file and abs(line - at) <= NEAR for name, at in places for file, line in lines)
    called = str(entry.row.get("function")) in calls_at(lines, folder)
    return near or called or bool(kernels_of(lines, folder) & {str(entry.row.get("kernel"))})


def _places(row: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """All places that a jump names: its launch, who called it, who wrote what it reads, what lost the adjoint."""
    for place in (row, row.get("via"), row.get("off_tape"), row.get("allocated")):
        if place and place.get("file"):
            yield Path(place["file"]).name, int(place["line"])
    for inner in (*(row.get("writers") or []), *(row.get("lost") or [])):
        yield from _places(inner)


def calls_at(lines: set[tuple[str, int]], folder: Path) -> set[str]:
    """Names of the functions that these lines call."""
    found = [(path, node) for path in folder.rglob("*.py") for node in ast.walk(ast.parse(path.read_text()))]
    return {
        ast.unparse(node.func).rpartition(".")[2]
        for path, node in found
        if isinstance(node, ast.Call) and (path.name, node.lineno) in lines
    }


def kernels_of(lines: set[tuple[str, int]], folder: Path) -> set[str]:
    """Names of the kernels whose source, or that of a function or text they use, has one of these lines."""
    bodies: dict[str, set[str]] = {}  # definition -> names that it uses
    hit: set[str] = set()
    kernels: set[str] = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                written = [ast.unparse(d) for d in node.decorator_list]
                named = {node.name, *(w.partition("(")[2].rstrip(")") for w in written if "wp.func_" in w)}
                if not any("wp." in w for w in written):
                    continue
                kernels |= {node.name} if any("kernel" in w for w in written) else set()
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                named, first = {node.targets[0].id}, node.lineno
                if not isinstance(node.value, ast.Constant):
                    continue
            else:
                continue
            for name in named:
                used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
                used |= {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
                bodies.setdefault(name, set()).update(used)
                if any(file == path.name and first <= line <= (node.end_lineno or first) for file, line in lines):
                    hit.add(name)
    return {k for k in kernels if _reached(k, bodies) & hit}


def _reached(name: str, bodies: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen.add(one)
            waiting += bodies.get(one, set()) & bodies.keys()
    return seen

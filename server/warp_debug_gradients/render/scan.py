"""scan_patterns as text: grouped by pattern, strong leads first."""

from __future__ import annotations

from warp_debug_gradients.render.text import cut, place, section
from warp_debug_gradients.schemas import PatternHit, ScanPatternsResult

GROUPS = {"concise": 8, "full": 100}
PLACES = {"concise": 4, "full": 60}
WEAK_GROUPS = {"concise": 4, "full": 100}


def title_of(result: ScanPatternsResult) -> str:
    """The first line."""
    strong = sum(h.likelihood == "strong" for h in result.hits)
    if strong:
        return f"LEADS: {strong} place(s) to look at first (nothing was measured)"
    return "LEADS: weak ones only (nothing was measured)" if result.hits else "NO LEADS (nothing was measured)"


def lines_of(result: ScanPatternsResult, detail: str) -> list[str]:
    """The body."""
    lines: list[str] = []
    for likelihood, most in (("strong", GROUPS[detail]), ("weak", WEAK_GROUPS[detail])):
        groups: dict[str, list[PatternHit]] = {}
        for hit in result.hits:
            if hit.likelihood == likelihood:
                groups.setdefault(hit.pattern, []).append(hit)
        shown = list(groups.items())[:most]
        for pattern, hits in shown:
            lines += _group(pattern, hits, likelihood, detail)
        if len(groups) > most:
            lines.append(f"... {len(groups) - most} more {likelihood} pattern(s) (detail=full, or result.json)")
    names = ", ".join(result.scanned[:6]) + (f" and {len(result.scanned) - 6} more" if len(result.scanned) > 6 else "")
    lines.append(f"Read: {names or 'nothing'}; {result.kernels} kernel(s), {result.patterns} patterns")
    return lines + section("Skipped", cut([f"{s.file}: {s.reason}" for s in result.skipped], PLACES[detail]))


def _group(pattern: str, hits: list[PatternHit], likelihood: str, detail: str) -> list[str]:
    first = hits[0]
    lines = [f"{likelihood.upper()}: {pattern} [{first.code}, quick-checks section {first.quick_check}]"]
    rows: list[str] = []
    for hit in hits:
        rows.append(f"{place(hit)}: {hit.source}")
        related = [f"{place(r)} {r.what}".strip() for r in hit.related[: 2 if detail == "concise" else 8]]
        about = "; ".join(p for p in [hit.detail, *related] if p)
        if about and (likelihood == "strong" or detail == "full"):
            rows.append(f"  {about}")
    most = PLACES[detail] * 2 if likelihood == "strong" else PLACES[detail]
    lines += [f"  {row}" for row in cut(rows, most)]
    if likelihood == "strong" or detail == "full":
        lines += [f"  Why: {first.why}.", f"  Harmless if {first.harmless}.", f"  Repair: {first.repair}"]
    return lines

"""The ledger as a picture: the jump of each op along the tape, and the error that has come together. Needs matplotlib."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from warp_debug_gradients.records import JumpRow, Ledger
from warp_debug_gradients.schemas import as_float

LEAST_RANGE = 0.1  # per cent of the derivative that the axes show at least, either way
NAMED = 5  # launch lines with a colour and a name of their own
COLOURS = ("#c1121f", "#e76f00", "#7209b7", "#0077b6", "#2a9d8f")
OTHERS = "#9aa0a6"


def draw_ledger(ledger: Ledger, path: Path) -> None:
    """Writes the PNG."""
    ledger_figure(ledger).savefig(path, format="png")


def ledger_figure(ledger: Ledger, ink: str = "black") -> Any:
    """The tape runs from left (its start) to right (the loss); the adjoint goes from right to left."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    difference = abs(as_float(ledger.get("finite_difference"))) or 1.0
    scale = difference if math.isfinite(difference) else 1.0
    figure = Figure(figsize=(6.4, 4.4), dpi=140, layout="constrained")
    FigureCanvasAgg(figure)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    jumps = ledger.get("jumps") or []
    ops = int(ledger.get("ops") or 1)
    for position, jump in enumerate(jumps):
        points = [(op, 100 * as_float(value) / scale) for op, value in jump.get("series") or []]
        points = [(op, share) for op, share in points if math.isfinite(share)]
        if not points:
            continue
        named = position < NAMED
        colour = COLOURS[position] if named else OTHERS
        label = name_of(jump) if named else None
        upper.bar([p[0] for p in points], [p[1] for p in points], width=max(0.8, ops / 300), color=colour, label=label)
    upper.axhline(0, color=ink, linewidth=0.6)
    upper.set_ylabel("jump of the op\n(% of the derivative)")
    if jumps:
        upper.legend(fontsize=8, loc="best", framealpha=0.0 if ink != "black" else 0.8, labelcolor=ink)
    book = [(op, 100 * as_float(value) / scale) for op, value in ledger.get("book") or []]
    book = [(op, share) for op, share in book if math.isfinite(share)]
    lower.step([b[0] for b in book], [b[1] for b in book], where="mid", color=ink, linewidth=1.2)
    lower.axhline(0, color=ink, linewidth=0.6)
    for axes in (upper, lower):  # noise should look like noise
        low, high = axes.get_ylim()
        axes.set_ylim(min(low, -LEAST_RANGE), max(high, LEAST_RANGE))
    lower.set_ylabel("error so far\n(% of the derivative)")
    lower.set_xlabel("tape op (the backward pass goes from right to left)")
    name = (ledger.get("parameter") or {}).get("name") or "the parameter"
    upper.set_title(
        f"{name}, iteration {ledger.get('iteration')}, backward call {ledger.get('backward_call')}: "
        f"AD {_number(ledger.get('autodiff'))}, FD {_number(ledger.get('finite_difference'))}",
        fontsize=9,
        color=ink,
    )
    for axes in (upper, lower):
        axes.tick_params(colors=ink)
        axes.yaxis.label.set_color(ink)
        axes.xaxis.label.set_color(ink)
        for spine in axes.spines.values():
            spine.set_color(ink)
    return figure


def name_of(jump: JumpRow) -> str:
    """A launch line in the legend."""
    file = str(jump.get("file") or "?").rsplit("/", 1)[-1]
    kind = f", {kind}" if (kind := jump.get("kind")) not in (None, "adjoint") else ""
    share = jump.get("share")
    text = f": {100 * share:.3g}%" if isinstance(share, (int, float)) else ""
    return f"{file}:{jump.get('line')} {jump.get('kernel') or ''}{kind}{text}"


def _number(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, (int, float)) else str(value)

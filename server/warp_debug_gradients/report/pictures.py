"""The pictures of a report as SVG with real text: FD against AD, the step ladder, the ledger, the loss."""

from __future__ import annotations

import io
import math
import re
from typing import Any

from warp_debug_gradients.records import part, parts
from warp_debug_gradients.report.story import Picture, Records
from warp_debug_gradients.schemas import as_float

INK = "#010203"  # stands for the colour of the page's text
GREY = "#808080"  # readable on white and on black, for files that know no page
BEFORE, NOW, OTHER = "#d1495b", "#1f9d8a", "#5b8def"
FEW_ELEMENTS = 3  # with fewer, directions say more


def draw(records: Records) -> list[Picture]:
    """Every picture for which there are numbers."""
    drawn = (_agreement(records), _ladder(records), _ledger(records), _loss(records))
    return [picture for picture in drawn if picture is not None]


def _agreement(records: Records) -> Picture | None:
    """FD against AD: right gradients lie on the line."""
    result = records.result
    if "outcome" in result:
        rows = parts(result, "directions")
        elements = [row for row in rows if not str(row["label"]).startswith(("random", "along"))]
        rows = elements if len(elements) >= FEW_ELEMENTS else [row for row in rows if row not in elements]
        groups = [
            (name, colour, [_triple(row, f"{side}_") for row in rows])
            for name, side, colour in (("before", "before", BEFORE), ("now", "after", NOW))
        ]
        section, what = "Before and after", "elements" if rows is elements else "directions"
    else:
        gradient = part(result, "gradient")
        elements = parts(gradient, "elements")
        what = "elements" if len(elements) >= FEW_ELEMENTS else "directions"
        groups = [("", OTHER, [_triple(row, "") for row in parts(gradient, what)])]
        section = "The evidence"
    groups = [(name, colour, [t for t in triples if all(map(math.isfinite, t))]) for name, colour, triples in groups]
    points = [t for _, _, triples in groups for t in triples]
    if not points:
        return None
    figure, axes = _figure(5.2, 4.6)
    values = [v for ad, fd, _ in points for v in (ad, fd)]
    low, high = min(values), max(values)
    margin = 0.08 * (high - low) or 0.1 * abs(high) or 1.0
    axes.plot([low - margin, high + margin], [low - margin, high + margin], color=INK, linewidth=0.8, label="AD = FD")
    for name, colour, triples in groups:
        if triples:
            ad, fd, error = (list(column) for column in zip(*triples))
            axes.errorbar(
                fd, ad, xerr=error, fmt="o", markersize=5, color=colour, alpha=0.85, label=name or what, capsize=2
            )
    axes.set_xlabel("FD: by differences, with its error")
    axes.set_ylabel("AD: the gradient that the update uses")
    _legend(axes)
    caption = f"Autodiff against finite differences, {what} of {result.get('parameter') or 'the parameter'}: a right gradient lies on the line."
    return _picture(figure, section, "agreement.svg", caption)


def _triple(row: dict[str, Any], prefix: str) -> tuple[float, float, float]:
    error = as_float(row.get(f"{prefix}error"))
    return (
        as_float(row.get(f"{prefix}autodiff")),
        as_float(row.get(f"{prefix}finite_difference")),
        error if math.isfinite(error) else 0.0,
    )


def _ladder(records: Records) -> Picture | None:
    """The slope at every step: it settles where steps are neither lost in noise nor too long."""
    check = next(
        (c for c in records.checks if c["verdict"] == "disagree"), records.checks[0] if records.checks else None
    )
    rows = parts(part(check, "gradient"), "directions")
    rows = [row for row in rows if len(parts(row, "rungs")) >= 2]
    if check is None or not rows:
        return None
    row = rows[0]
    rungs = [(as_float(r["step"]), as_float(r["central"])) for r in row["rungs"]]
    rungs = [(h, slope) for h, slope in rungs if math.isfinite(h) and h > 0 and math.isfinite(slope)]
    if len(rungs) < 2:
        return None
    figure, axes = _figure(6.4, 3.4)
    axes.plot([h for h, _ in rungs], [s for _, s in rungs], "o-", color=OTHER, markersize=5, label="central difference")
    ad, step = as_float(row.get("autodiff")), as_float(row.get("step"))
    if math.isfinite(ad):
        axes.axhline(
            ad, color=BEFORE if row.get("verdict") == "disagree" else NOW, linewidth=1.4, label=f"AD = {ad:.5g}"
        )
    if math.isfinite(step) and step > 0:
        axes.axvline(step, color=INK, linewidth=0.8, linestyle=":", label=f"chosen step {step:.2g}")
    axes.set_xscale("log")
    axes.ticklabel_format(axis="y", useOffset=False)
    axes.set_xlabel("step (of the parameter's own size)")
    axes.set_ylabel("slope")
    _legend(axes)
    caption = f"The step ladder of {row.get('label')}, iteration {check['iteration']}: the slope settles at {as_float(row.get('finite_difference')):.6g}."
    return _picture(figure, "The evidence", "ladder.svg", caption)


def _ledger(records: Records) -> Picture | None:
    """The error that each tape op puts in; where none does, there is nothing to see."""
    book, jumps = records.ledger.get("book"), parts(records.ledger, "jumps")
    if not book or not any(j.get("significant") for j in jumps):
        return None
    from warp_debug_gradients.operations.picture import ledger_figure

    figure = ledger_figure(records.ledger, ink=INK)
    caption = "The ledger: what each tape operation puts into the derivative (above), and the error that has come together (below)."
    return _picture(figure, "The evidence", "ledger.svg", caption)


def _loss(records: Records) -> Picture | None:
    """The loss over the run, before and now."""
    flow = part(records.result, "workflow")
    lines = [
        (name, colour, flow.get(side)) for name, side, colour in (("before", "before", BEFORE), ("now", "after", NOW))
    ]
    if lines[1][2] is None:
        return None
    figure, axes = _figure(6.4, 3.4)
    for name, colour, series in lines:
        values = [as_float(v) for v in parts(series, "values")]
        if series and values:
            positions = [k * (series["count"] - 1) / max(1, len(values) - 1) for k in range(len(values))]
            axes.plot(
                positions, values, color=colour, linewidth=1.6, label=f"{name}: {series['name']}, {series['health']}"
            )
    finite = [float(v) for line in axes.get_lines() for v in line.get_ydata() if math.isfinite(v)]
    if finite and min(finite) > 0 and max(finite) > 20 * min(finite):
        axes.set_yscale("log")
    axes.set_xlabel("value, in the order printed")
    axes.set_ylabel("loss")
    _legend(axes)
    return _picture(
        figure, "The script's own numbers", "loss.svg", "The loss that the script reports, before the edit and now."
    )


def _figure(width: float, height: float) -> tuple[Any, Any]:
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.subplots()
    axes.tick_params(colors=INK)  # pyright: ignore[reportUnknownMemberType] (Matplotlib leaves **kwargs untyped)
    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)
    for spine in axes.spines.values():
        spine.set_color(INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, axes


def _legend(axes: Any) -> None:
    axes.legend(fontsize=8, frameon=False, labelcolor=INK)


def _picture(figure: Any, section: str, file: str, caption: str) -> Picture:
    import matplotlib

    stream = io.StringIO()
    settings = {"svg.fonttype": "none", "svg.hashsalt": file}  # text stays text; ids repeat
    with matplotlib.rc_context(settings):  # pyright: ignore[reportUnknownMemberType, reportArgumentType]
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    svg = stream.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.S)
    svg = re.sub(
        r' id="(?:figure|axes|patch|text|legend|line2d|xtick|ytick|matplotlib\.axis|LineCollection|PathCollection|PolyCollection)_\d+"',
        "",
        svg,
    )
    name = file.removesuffix(".svg")  # ids that are referred to are unique among all pictures of the page
    svg = re.sub(r'(id="|url\(#|xlink:href="#)', rf"\g<1>{name}-", svg)
    label = caption.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    inline = re.sub(r"<svg ", f'<svg role="img" aria-label="{label}" ', svg, count=1).replace(INK, "currentColor")
    return Picture(section, file, caption, inline, svg.replace(INK, GREY))

"""Words and numbers that all renderings share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

SHOWS = 0.01  # of a slope: an error that somebody may wonder at beside "agree"
SMALL_SLOPE = 2.0  # times the slope: from this size of the gradient on it is worth a word
LARGE = 0.1  # part of the size: an error above it is none that was judged mildly


def number(value: float | str | None) -> str:
    """Six significant digits; non-finite values by name."""
    return "?" if value is None else value if isinstance(value, str) else f"{value:.6g}"


def percent(value: float | str | None) -> str:
    """A relative error."""
    if value is None or isinstance(value, str):
        return number(value)
    return f"{100 * value:.3g}%"


def judged_by_size(autodiff: float, finite_difference: float, size: float) -> str:
    """What an error is judged against, where that is not the slope itself: one that happens to be small beside the gradient.

    Empty where the slope is of the gradient's own size, or the error small beside it, or large beside both.
    """
    off, slope = abs(autodiff - finite_difference), abs(finite_difference)
    if not (off > SHOWS * slope and size > SMALL_SLOPE * slope and off < LARGE * size):
        return ""
    of_slope = f"{percent(off / slope)} of this slope" if slope else f"{off:.3g} from a slope of zero"
    return f"{of_slope}, {percent(off / size)} of the gradient's size, which is what is judged"


def moved_by(relative: float | str | None, max_abs: float | str | None) -> str:
    """How far values moved: the largest change as a part of the largest content, or as it is where that was zero."""
    if relative in ("inf", float("inf")) and max_abs not in ("inf", float("inf"), None):
        return f"{number(max_abs)} from zero"
    return percent(relative)


def place(where: Any) -> str:
    """file:line, where known, and the line that called it where that says more."""
    if where is None or not getattr(where, "file", None):
        return ""
    caller = getattr(where, "off_tape", None) or getattr(where, "via", None)
    called = f" (called from {caller.file}:{caller.line})" if caller else ""
    return (f"{where.file}:{where.line}" if where.line else str(where.file)) + called


def pair(item: Any) -> str:
    """Autodiff and finite difference, side by side, both labelled."""
    if item.autodiff is None and item.finite_difference is None:
        return "nothing measured"
    text = f"AD = {number(item.autodiff)}, FD = {number(item.finite_difference)}"
    if item.error is not None:
        text += f" ± {number(item.error)}"
    relative, size = getattr(item, "relative_error", None), getattr(item, "size", None)
    numbers = [x for x in (item.autodiff, item.finite_difference, size) if isinstance(x, float)]
    if len(numbers) == 3 and (judged := judged_by_size(numbers[0], numbers[1], numbers[2])):
        return f"{text}, off by {judged}"
    return text if relative is None else f"{text}, relative error {percent(relative)}"


def section(name: str, rows: Sequence[str]) -> list[str]:
    """A heading with indented rows; nothing where there are none."""
    return [f"{name}:", *(f"  {row}" for row in rows)] if rows else []


def cut(rows: list[str], few: int) -> list[str]:
    """The first `few` rows, and how many more there are."""
    if len(rows) <= few:
        return rows
    return [*rows[:few], f"... {len(rows) - few} more (detail=full, or result.json)"]


def middle(rows: list[str], few: int) -> list[str]:
    """The first rows and the last two."""
    if len(rows) <= few:
        return rows
    return [*rows[: few - 2], f"... {len(rows) - few} more (detail=full, or result.json)", *rows[-2:]]

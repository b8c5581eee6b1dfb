"""How a gradient is wrong: zero, a factor, a sign, non-finite, few elements, or subtle; and whether more so over time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Mapping, Optional, Sequence, Tuple

import numpy as np

# Elements whose FD error is at most this fraction of FD carry a ratio; others say nothing about factors.
RATIO_PRECISION = 0.1
# A factor has to hold over at least this many ratios, and this fraction of them.
FEWEST_RATIOS, RATIO_MAJORITY = 3, 0.9
# A ratio fits a factor within this relative tolerance plus its own three errors.
FACTOR_TOLERANCE = 0.01
# Ratios named exactly: small whole multiples and their inverses (an adjoint run twice, a lost 1/N, ...).
LARGEST_WHOLE = 64
# The relative error grows if it is this many times larger over the whole tape than over its shortest part, and stays if
# it changes by less than this part of it, both beyond what the differences leave open.
GROWTH, STEADY = 3.0, 0.25
# A part of a tape whose FD is not known to this fraction says nothing.
PART_PRECISION = 0.1
FEWEST_PARTS = 3


@dataclass(frozen=True)
class Signature:
    """kind: none, zero, factor, sign, nonfinite, sparse, subtle (growing: see `growth`). factor: AD / FD or None."""

    kind: str
    factor: Optional[float]
    message: str


def signature(
    ad_elements: Sequence[float],
    fd_elements: Sequence[float],
    fd_errors: Sequence[float],
    ad_directions: Sequence[float] = (),
    fd_directions: Sequence[float] = (),
    fd_direction_errors: Sequence[float] = (),
    round_off: float = 2e-4,
) -> Signature:
    """The pattern over single elements (n,) and directions (m,), all float64; errors are standard errors.

    An element differs where |AD - FD| > 3 err + round_off |FD|. Unmeasured elements have FD = nan.
    """
    ad, fd, err = _columns(ad_elements, fd_elements, fd_errors)
    ad_v, fd_v, err_v = _columns(ad_directions, fd_directions, fd_direction_errors)

    broken = np.flatnonzero(~np.isfinite(ad))
    if broken.size:
        return Signature("nonfinite", None, f"elements {_listed(broken)} of the gradient are not finite")
    if np.any(~np.isfinite(ad_v)):
        return Signature("nonfinite", None, "the gradient is not finite outside the elements that were sampled")

    everything = _stack((ad, ad_v)), _stack((fd, fd_v)), _stack((err, err_v))
    differs = _differs(*everything, round_off)
    if not differs.any():
        return Signature("none", None, "no difference beyond the error of the finite differences")
    significant = np.isfinite(everything[1]) & (np.abs(everything[1]) > 3.0 * everything[2])
    if significant.any() and not everything[0].any():
        return Signature("zero", 0.0, "the gradient is exactly zero where the objective changes")

    factor = _constant_ratio(*everything)
    if factor is not None:
        if abs(factor + 1.0) <= FACTOR_TOLERANCE:
            return Signature("sign", -1.0, "the gradient has the wrong sign")
        return Signature("factor", factor, f"the gradient is {_named(factor)} times the derivative")

    wrong, right = _differs(ad, fd, err, round_off), _fits(ad, fd, err)
    zeroed = wrong & (ad == 0.0)
    if zeroed.any() and right.any() and zeroed.sum() == wrong.sum():
        text = f"zero in {zeroed.sum()} of {ad.size} sampled elements ({_listed(np.flatnonzero(zeroed))})"
        return Signature("sparse", 0.0, f"{text}, right in {right.sum()}")
    if wrong.any() and right.sum() > wrong.sum():
        part = _constant_ratio(ad[wrong], fd[wrong], err[wrong], fewest=1)
        how = f", there {_named(part)} times the derivative" if part is not None else ""
        text = f"wrong in {wrong.sum()} of {ad.size} sampled elements ({_listed(np.flatnonzero(wrong))})"
        return Signature("sparse", part, text + how)
    if right.any() and not wrong.any():
        return Signature("sparse", None, f"all {right.sum()} measured elements are right, a direction is not")
    return Signature("subtle", None, "wrong by no constant factor")


@dataclass(frozen=True)
class Growth:
    """How the relative error changes with the horizon: it grows, or it stays the same."""

    grows: bool
    message: str


def growth(rows: Sequence[Mapping[str, Any]]) -> Optional[Growth]:
    """What derivatives through the last ops of a tape say; None where they show neither growth nor constancy.

    rows: ops, autodiff, finite_difference, error, by rising number of ops; the last one is the whole tape.
    """
    known = [
        (int(row["ops"]), abs(row["autodiff"] - row["finite_difference"]) / size, row["error"] / size)
        for row in rows
        if math.isfinite(row["autodiff"])
        and (size := abs(row["finite_difference"])) > 0.0
        and row["error"] <= PART_PRECISION * size
    ]
    if len(known) < FEWEST_PARTS or known[-1][0] != rows[-1]["ops"]:
        return None
    listed = ", ".join(f"{_percent(error)} over the last {ops} ops" for ops, error, _ in known[:-1])
    series = f"{listed}, {_percent(known[-1][1])} over all {known[-1][0]}"
    low, high = known[0], known[-1]
    pairs = list(zip(known, known[1:]))
    rising = all(far[1] + 3.0 * far[2] >= near[1] - 3.0 * near[2] for near, far in pairs)
    if rising and high[1] - 3.0 * high[2] >= GROWTH * low[1] and high[1] > low[1] + 3.0 * (low[2] + high[2]):
        return Growth(True, f"the relative error grows with the horizon: {series}")
    if all(abs(error - high[1]) <= STEADY * high[1] + 3.0 * (doubt + high[2]) for _, error, doubt in known):
        return Growth(False, f"the relative error is the same at every horizon: {series}")
    return None


def _percent(part: float) -> str:
    return f"{100.0 * part:.2g} %" if part < 1.0 else f"{100.0 * part:.0f} %"


def _columns(*columns: Sequence[float]) -> Tuple[np.ndarray, ...]:
    arrays = tuple(np.asarray(column, dtype=np.float64).reshape(-1) for column in columns)
    if len({array.size for array in arrays}) != 1:
        raise ValueError(f"columns of {[array.size for array in arrays]} values belong together")
    return arrays


def _stack(columns: Tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    return np.concatenate(columns)


def _differs(ad: np.ndarray, fd: np.ndarray, err: np.ndarray, round_off: float) -> np.ndarray:
    measured = np.isfinite(fd) & np.isfinite(err)
    return measured & (np.abs(ad - fd) > 3.0 * err + round_off * np.abs(fd))


def _fits(ad: np.ndarray, fd: np.ndarray, err: np.ndarray) -> np.ndarray:
    """Elements known to be right to 5 %, not merely unmeasured."""
    measured = np.isfinite(fd) & np.isfinite(err) & (3.0 * err <= 0.05 * np.abs(fd))
    return measured & (np.abs(ad - fd) <= 3.0 * err + 0.01 * np.abs(fd))


def _constant_ratio(ad: np.ndarray, fd: np.ndarray, err: np.ndarray, fewest: int = FEWEST_RATIOS) -> Optional[float]:
    """AD / FD where it is one number, rounded to a whole or 1/whole that fits; None where it is not."""
    usable = np.isfinite(fd) & np.isfinite(err) & (err <= RATIO_PRECISION * np.abs(fd)) & (fd != 0.0)
    if usable.sum() < fewest:
        return None
    ratio, doubt = ad[usable] / fd[usable], err[usable] / np.abs(fd[usable])
    weight = 1.0 / (doubt + FACTOR_TOLERANCE)
    order = np.argsort(ratio)
    centre = float(ratio[order][np.searchsorted(np.cumsum(weight[order]), 0.5 * weight.sum())])
    fits = np.abs(ratio - centre) <= abs(centre) * (3.0 * doubt + FACTOR_TOLERANCE)
    if fits.mean() < RATIO_MAJORITY or abs(centre - 1.0) <= FACTOR_TOLERANCE or centre == 0.0:
        return None
    exact = _whole(centre)
    return exact if exact is not None else centre


def whole_ratio(rows: Sequence[Mapping[str, Any]]) -> Optional[float]:
    """AD / FD where it is one whole number or its inverse, for a parameter of which there are too few ratios for more."""
    columns = [np.array([row[k] for row in rows], float) for k in ("autodiff", "finite_difference", "error")]
    ratio = _constant_ratio(*columns, fewest=1)
    return _whole(ratio) if ratio is not None else None


def _whole(factor: float) -> Optional[float]:
    for whole in range(1, LARGEST_WHOLE + 1):
        for exact in (float(whole), 1.0 / whole):
            if abs(abs(factor) - exact) <= FACTOR_TOLERANCE * exact:
                return math.copysign(exact, factor)
    return None


def _named(factor: float) -> str:
    if abs(factor) < 1.0 and _whole(factor) is not None:
        return f"{'-' if factor < 0.0 else ''}1/{round(1.0 / abs(factor))}"
    return f"{factor:.4g}"


def _listed(indices: np.ndarray) -> str:
    shown = ", ".join(str(index) for index in indices[:8])
    return shown + (f" and {indices.size - 8} more" if indices.size > 8 else "")

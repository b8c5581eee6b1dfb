"""How a gradient is wrong: zero, a factor, a sign, non-finite, few elements, or subtle."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Optional, Sequence, Tuple

import numpy as np

# Elements whose FD error is at most this fraction of FD carry a ratio; others say nothing about factors.
RATIO_PRECISION = 0.1
# A factor has to hold over at least this many ratios, and this fraction of them.
FEWEST_RATIOS, RATIO_MAJORITY = 3, 0.9
# A ratio fits a factor within this relative tolerance plus its own three errors.
FACTOR_TOLERANCE = 0.01
# Ratios named exactly: small whole multiples and their inverses (an adjoint run twice, a lost 1/N, ...).
LARGEST_WHOLE = 64


@dataclass(frozen=True)
class Signature:
    """kind: none, zero, factor, sign, nonfinite, sparse, subtle. factor: AD / FD (float) or None."""

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

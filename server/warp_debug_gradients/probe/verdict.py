"""Agree, disagree or inconclusive: an autodiff derivative (AD) beside a finite difference (FD) with an error.

    disagree      |AD - FD| >  band,   band = 2.5 err + a max(|FD|, magnitude)
    agree         |AD - FD| <= band and band <= 5 % of max(|FD|, magnitude)
    inconclusive  everything else, with the reason that was measured

a is the round-off that AD itself may carry. Pure functions; no evaluation, no Warp.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import Optional, Sequence

from .differences import Estimate

# FD is allowed to be wrong by this many times its error estimate before AD is blamed. Measured (`make quality`)
# with `confirm`, which repeats a marginal disagreement: 3 misses more 1 % faults, 2 accuses too often.
ERROR_MULTIPLE = 2.5
# Round-off of a whole backward pass relative to the derivative: some 1000 ulps in float32 (long sums), more
# ulps in float64, where nothing is lost by being generous; float16 tapes keep two digits.
ROUND_OFF_BY_EPS = ((1e-12, 1e-9), (1e-5, 2e-4), (math.inf, 2e-2))
# A wider band agrees with too many wrong gradients.
WIDEST_AGREEMENT = 0.05
# One direction against others must be this many bands off, or another nearly off to the same side.
LONE_DISAGREEMENT = 2.5
NEARLY_OFF = 0.6


@dataclass(frozen=True)
class Judgement:
    """verdict: agree, disagree, inconclusive. reason: a code, None where agree or plainly disagree.

    autodiff, finite_difference, error, band: floats per unit of the direction's t; band is the inequality's
    right-hand side, nan where none applies. gap: between the one-sided slopes of a kink, else 0.
    size: max(|FD|, magnitude), nan where the band is.
    """

    verdict: str
    reason: Optional[str]
    message: str
    autodiff: float = math.nan
    finite_difference: float = math.nan
    error: float = math.nan
    band: float = math.nan
    gap: float = 0.0
    size: float = math.nan

    @property
    def resolution(self) -> Optional[float]:
        """The smallest error, as a part of the size, that is called a disagreement; None where nothing was judged."""
        part = self.band / self.size if self.size > 0.0 else math.nan
        return part if math.isfinite(part) else None

    @property
    def off(self) -> float:
        """|AD - FD|."""
        return abs(self.autodiff - self.finite_difference)

    @property
    def bands_off(self) -> float:
        """|AD - FD| in units of the band."""
        return abs(self.autodiff - self.finite_difference) / self.band if self.band > 0.0 else math.inf


def round_off(eps: float) -> float:
    """The factor a for the machine eps of the gradient's dtype (the coarsest that takes part)."""
    return next(a for limit, a in ROUND_OFF_BY_EPS if eps <= limit)


def judge(ad: float, estimate: Estimate, eps: float, magnitude: float = 0.0) -> Judgement:
    """One direction. magnitude: the size |<g, v>| a direction like v usually has, 0 if unknown.

    For a random unit-RMS v that is the 2-norm of the gradient; with it, a direction that happens to be
    nearly orthogonal to the gradient is judged by what its error means for the gradient.
    """
    ad, value, error = float(ad), estimate.value, estimate.error
    natural = max(abs(value), abs(magnitude) if math.isfinite(magnitude) else 0.0)
    pair = f"AD = {ad:.6g}, FD = {value:.6g} ± {error:.2g}"

    def say(verdict: str, reason: Optional[str], text: str, band: float = math.nan) -> Judgement:
        size = math.nan if math.isnan(band) else natural
        return Judgement(verdict, reason, f"{pair}: {text}", ad, value, error, band, size=size)

    measured = estimate.status in ("settled", "kink") and math.isfinite(value)
    if not math.isfinite(ad):
        if measured:
            return say("disagree", "nonfinite", "the gradient is not finite, the derivative is")
        return say("inconclusive", estimate.status, f"neither is usable ({estimate.message})")
    if estimate.status == "kink":
        left, right = estimate.left or 0.0, estimate.right or 0.0
        kink = say("inconclusive", "kink", f"left slope {left:.6g}, right slope {right:.6g}")
        return replace(kink, gap=abs(right - left))
    if estimate.status == "staircase":
        advice = "zero is the right derivative of a piecewise-constant objective; a surrogate is a modelling choice"
        if ad != 0.0:
            advice = "AD has a slope that no such step shows: a surrogate, or digits that are rounded away"
        return say("inconclusive", "staircase", f"{estimate.message}; {advice}")
    if estimate.status != "settled":
        return say("inconclusive", estimate.status, estimate.message)

    band, off = ERROR_MULTIPLE * error + round_off(eps) * natural, abs(ad - value)
    formula = f"{ERROR_MULTIPLE:g} err + a·size = {band:.3g}"
    if off > band:
        return say("disagree", None, f"|AD - FD| = {off:.3g} > {formula}", band)
    if value == 0.0 and ad == 0.0:
        return say("agree", None, f"both are zero ({estimate.message})", band)
    if band <= WIDEST_AGREEMENT * natural:
        return say("agree", None, f"|AD - FD| = {off:.3g} <= {formula}", band)
    return say("inconclusive", "imprecise", f"{formula} > 5 % of {natural:.3g}: FD is too uncertain here", band)


def combine(judgements: Sequence[Judgement]) -> Judgement:
    """Several directions, one answer; the message and numbers are those of the direction that decided.

    1. A non-finite gradient where a direction settled: disagree.
    2. Disagree if two directions do, or the only one measured. One among others may be a fault in few
       elements or a kink that only this direction crosses: it wins only if it is LONE_DISAGREEMENT bands
       off or another is NEARLY_OFF bands off with AD / FD on the same side of 1, else 'inconclusive'
       (reason 'directions_differ').
    3. Agree if more than half agree and none disagrees.
    4. Else inconclusive with the most frequent reason.
    """
    if not judgements:
        return Judgement("inconclusive", "unmeasured", "no direction was measured")
    total = len(judgements)
    disagree = [each for each in judgements if each.verdict == "disagree"]
    agree = [each for each in judgements if each.verdict == "agree"]
    unsure = [each for each in judgements if each.verdict == "inconclusive"]
    broken = [each for each in disagree if each.reason == "nonfinite"]
    if broken:
        return broken[0]
    if disagree:
        worst = max(disagree, key=lambda each: each.bands_off)
        count = f" ({len(disagree)} of {total} directions disagree)" if total > 1 else ""
        seconded = any(_off_to_the_same_side(worst, each) for each in agree + unsure)
        if len(disagree) > 1 or total == 1 or worst.bands_off > LONE_DISAGREEMENT or seconded:
            return replace(worst, message=worst.message + count)
        return replace(worst, verdict="inconclusive", reason="directions_differ", message=worst.message + count)
    if 2 * len(agree) > total:
        closest = max(agree, key=lambda each: each.bands_off)
        count = f" ({len(agree)} of {total} directions agree)" if total > 1 else ""
        return replace(closest, message=closest.message + count)
    reason = Counter(each.reason for each in unsure).most_common(1)[0][0]
    return next(each for each in unsure if each.reason == reason)


def within_kinks(judgement: Judgement, others: Sequence[Judgement], factor: float) -> Judgement:
    """The judgement, unless it is a disagreement that kinks may account for: |AD - FD| <= factor * the widest gap.

    At a point with kinks AD is the slope on one side of each, and they need not show in every direction.
    """
    gap = factor * max((each.gap for each in others), default=0.0)
    if judgement.verdict != "disagree" or judgement.reason == "nonfinite" or judgement.off > gap:
        return judgement
    message = f"{judgement.message}; but other directions meet kinks here, wide enough for that"
    return replace(judgement, verdict="inconclusive", reason="kink", message=message)


def decisive(overall: Judgement, judged: Sequence[Judgement]) -> int:
    """Which of the `judged` directions `combine` took its numbers from."""
    fd = overall.finite_difference
    return next(k for k, each in enumerate(judged) if each.finite_difference == fd or math.isnan(fd))


def _off_to_the_same_side(one: Judgement, other: Judgement) -> bool:
    """Whether the other direction hints at the same factor between AD and FD."""
    if not (math.isfinite(other.band) and other.bands_off > NEARLY_OFF):
        return False
    if not (one.finite_difference and other.finite_difference):
        return False
    return (one.autodiff / one.finite_difference > 1.0) == (other.autodiff / other.finite_difference > 1.0)

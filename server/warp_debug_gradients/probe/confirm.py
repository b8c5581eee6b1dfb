"""Does a disagreement persist at the smallest steps that could show it, and at those beside the one that did?

A derivative is a limit. At the step t where |AD - FD| t is CONFIRM_NOISE times the objective's noise, the slope can
still be told from AD; where it has gone over to AD there (floors, casts, bins, contacts), the larger steps crossed
something, and the difference is theirs. A marginal one is measured again beside its step: where the slopes there
scatter by as much as AD is off, FD was less certain than it claimed. Nobody is accused then.

Nor is anybody where the objective is as rough at the finest steps that the parameter's dtype has as at any other, and AD
predicts more there than it ever moves: a chaotic horizon has such derivatives, and no difference can tell.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Generator, List, Sequence, Tuple

from .differences import Estimate, Reply
from .estimate import as_pair
from .ladder import PLAUSIBLE_NOISE
from .verdict import ERROR_MULTIPLE, Judgement

# A disagreement is looked at again where it is this many times the objective's noise,
CONFIRM_NOISE = 24.0
# and where the parameter still moves by this many of its own ulps.
CONFIRM_ULPS = 64.0
# A disagreement of fewer bands than this is measured once more at steps beside the estimate's own.
MARGINAL = 4.0
NEIGHBOURS = (0.37, 0.61, 1.3)
# A brief confirmation of a disagreement of at least so many bands is one-sided, one evaluation in place of two, where the
# sides of the estimate, whose step is twice as large or more, are off by less than this part of the gap.
CLEAR = 10.0
STRAIGHT = 0.1
# A finer step moves the objective by this part of its size, if AD is right.
CONFIRM_CHANGE = 1e-3
# It is gone where every slope lies within this fraction of the gap around AD.
CONFIRM_FRACTION = 0.35
# An objective that moves at the finest step by this part of all that it moves, at steps of so many times that one, is rough.
ROUGH = 0.1
ROUGH_STEPS = 100.0


def confirm(
    judged: Judgement,
    estimate: Estimate,
    base: float,
    repeats: Sequence[float],
    objective_eps: float,
    parameter_eps: float,
    scale: float = 1.0,
    brief: bool = False,
) -> Generator[List[float], Sequence[Reply], Tuple[Judgement, int]]:
    """`judged` again, or 'inconclusive' where finer steps say what AD says; and the evaluations that took.

    A generator as in `differences`. judged, estimate: of one direction, same t. base, repeats, the two eps and
    scale: as in `directional_derivative`. brief: one finer step, and nobody is accused by a marginal disagreement.
    """
    gap, used = abs(judged.autodiff - judged.finite_difference), 0
    if not (math.isfinite(gap) and gap > 0.0 and math.isfinite(estimate.step)):
        return judged, used
    proven = max(objective_eps * abs(base), max([base, *repeats]) - min([base, *repeats]))
    least = CONFIRM_ULPS * parameter_eps * scale
    finer = _finer_steps(gap, estimate, base, proven, least)
    for t in finer[:1] if brief else finer:
        steps = [t] if brief else [t, 2.0 * t, 4.0 * t]
        if brief and judged.bands_off >= CLEAR and _asymmetry(estimate) <= STRAIGHT * gap:
            slopes = yield from _one_sided(t, base)
            used += 1
        else:
            slopes = yield from _slopes(steps)
            used += 2 * len(steps)
        if slopes and all(abs(slope - judged.autodiff) <= CONFIRM_FRACTION * gap for slope in slopes):
            return _unconfirmed(judged, estimate, steps, slopes), used
        moves = max((2.0 * step * abs(slope) for step, slope in zip(steps, slopes)), default=0.0)
        if t == least and moves > PLAUSIBLE_NOISE * proven and _too_rough(judged, estimate, steps[-1], moves):
            return _unresolved(judged, steps, moves), used
    marginal = judged.verdict == "disagree" and judged.bands_off < MARGINAL
    if marginal and brief:
        return _unrepeated(judged, estimate, []), used
    if marginal:
        slopes = yield from _slopes([factor * estimate.step for factor in NEIGHBOURS])
        used += 2 * len(NEIGHBOURS)
        spread = max([0.0] + [abs(slope - judged.finite_difference) for slope in slopes])
        if gap <= judged.band + ERROR_MULTIPLE * max(0.0, spread - judged.error):
            return _unrepeated(judged, estimate, slopes), used
    return judged, used


def _finer_steps(gap: float, estimate: Estimate, base: float, proven: float, least: float) -> List[float]:
    """Where to look again, the larger steps first, each well below the estimate's own.

    What the ladder took for noise may be the objective itself, crossing many small edges or folding back in chaos.
    Where it is much more than the repeats and the dtype explain (`proven`), two finer steps are tried: one at which
    AD moves the objective by CONFIRM_CHANGE of its size, and the finest that still can tell.
    """
    noise = max(estimate.noise if math.isfinite(estimate.noise) else 0.0, proven)
    wanted = [CONFIRM_NOISE * noise / gap]
    if noise > PLAUSIBLE_NOISE * proven:
        finest = CONFIRM_NOISE * proven / gap
        wanted += [max(finest, CONFIRM_CHANGE * abs(base) / gap), finest]
    steps: List[float] = []
    for t in (max(each, least) for each in wanted):
        if t <= 0.5 * min([estimate.step, *steps]):
            steps.append(t)
    return steps


def _slopes(steps: Sequence[float]) -> Generator[List[float], Sequence[Reply], List[float]]:
    """Central slopes at the steps, without those that the parameter's rounding swallows."""
    asked = [sign * step for step in steps for sign in (1.0, -1.0)]
    replies = yield asked
    pairs = [as_pair(step, reply) for step, reply in zip(asked, replies)]
    return [
        (plus - minus) / (right - left)
        for (right, plus), (left, minus) in zip(pairs[0::2], pairs[1::2])
        if right != left
    ]


def _one_sided(step: float, base: float) -> Generator[List[float], Sequence[Reply], List[float]]:
    """The slope between the unperturbed objective and the one at `step`; none where rounding swallows the step."""
    ((moved, value),) = [as_pair(step, reply) for reply in (yield [step])]
    return [(value - base) / moved] if moved else []


def _asymmetry(estimate: Estimate) -> float:
    """How far the one-sided slopes at the estimate's step are from the central one."""
    sides = [(r["forward"], r["backward"]) for r in estimate.rungs if r["step"] == estimate.step]
    return min((0.5 * abs(f - b) for f, b in sides if f is not None and b is not None), default=math.inf)


def _too_rough(judged: Judgement, estimate: Estimate, step: float, moves: float) -> bool:
    """Whether the objective is rough down to `step`, where it moves by `moves`, and AD predicts more than it ever moves."""
    rungs = [(2.0 * r["step"] * abs(r["central"] or 0.0), r["step"]) for r in estimate.rungs if r["step"]]
    largest, at = max([(2.0 * estimate.step * abs(judged.finite_difference), estimate.step), *rungs])
    rough = moves >= ROUGH * largest and ROUGH_STEPS * step <= at
    return rough and 2.0 * step * abs(judged.autodiff) > max(largest, moves)


def _unresolved(judged: Judgement, steps: Sequence[float], moves: float) -> Judgement:
    text = (
        f"AD = {judged.autodiff:.6g}, FD = {judged.finite_difference:.6g} ± {judged.error:.2g}; but the objective still moves by "
        f"{moves:.3g} at steps from {steps[0]:.2g}, the finest that the parameter's dtype has, and AD predicts "
        f"{2.0 * steps[0] * abs(judged.autodiff):.3g} there: no difference can tell"
    )
    return replace(judged, verdict="inconclusive", reason="unresolved", message=text)


def _unrepeated(judged: Judgement, estimate: Estimate, slopes: Sequence[float]) -> Judgement:
    found = ", ".join(f"{slope:.6g}" for slope in slopes)
    why = (
        f"but {found} at steps beside it: FD is too uncertain here"
        if slopes
        else "a difference that only steps beside it could confirm, and the time did not allow them"
    )
    text = (
        f"AD = {judged.autodiff:.6g}, FD = {judged.finite_difference:.6g} ± {judged.error:.2g} at step "
        f"{estimate.step:.2g}, {why}"
    )
    return replace(judged, verdict="inconclusive", reason="imprecise", message=text)


def _unconfirmed(judged: Judgement, estimate: Estimate, steps: Sequence[float], slopes: Sequence[float]) -> Judgement:
    """The disagreement is one of larger steps only."""
    if all(slope == 0.0 for slope in slopes) and judged.autodiff == 0.0:
        reason = "staircase"
        text = (
            f"AD = 0, and so is every difference up to step {steps[-1]:.2g}; at step {estimate.step:.2g} the slope is "
            f"{judged.finite_difference:.4g}. The objective is piecewise constant: zero is its derivative, a surrogate "
            "is a modelling choice"
        )
    else:
        reason, found = "scale_dependent", ", ".join(f"{slope:.4g}" for slope in slopes)
        text = (
            f"AD = {judged.autodiff:.6g}; FD = {judged.finite_difference:.6g} at step {estimate.step:.2g}, but {found} "
            f"at steps from {steps[0]:.2g}: the objective is not smooth at this scale"
        )
    return replace(judged, verdict="inconclusive", reason=reason, message=text)

"""Finite differences that know their own error: directional derivatives from few evaluations.

`directional_derivative` and `refine` are generators: they yield lists of steps t, are sent the values
f(theta + t v) in the same order, and return an `Estimate`. They never evaluate anything themselves, so the
steps of one list can run side by side in other processes. A value may be a float (nan: the evaluation
failed) or a pair (effective step, value) where the perturbed parameter was rounded:
effective step = <theta' - theta, v> / <v, v>.
"""

from __future__ import annotations

import math
from typing import Callable, Generator, List, Optional, Sequence, Tuple

from .estimate import GOOD_ENOUGH, Estimate, Measurement, Reply

__all__ = ["Estimate", "Reply", "Steps", "directional_derivative", "refine"]

Steps = Generator[List[float], Sequence[Reply], Estimate]

# Repeats that spread by at most this many ulps are reordered sums (atomics), counted as noise; beyond, the
# objective depends on something other than the parameter.
REORDERING_ULPS = 1024.0
# One rounding of the objective itself: half a spacing of its dtype.
ROUNDING = 0.5
# Below the smallest normal number a dtype loses digits: eps of the dtype up to, that number.
SMALLEST_NORMAL = ((1e-12, 2.3e-308), (1e-5, 1.2e-38), (math.inf, 6.2e-5))
MOST_EVALUATIONS = 15
# The scan: four pairs from eps^0.56 to 1/2 of the parameter's scale. Smaller steps drown in round-off of the
# parameter itself, and the best step of a well scaled objective, eps^(1/3), lies inside.
SCAN_PAIRS = 4
SCAN_LOW_POWER = 0.56
SCAN_HIGH_EXPONENT = -1
# With fewer evaluations than this there is no scan: two steps (powers of two) below eps^(1/3), the best of a well
# scaled objective. Below, since only a slow program is measured so: over a long horizon the objective bends early.
SCAN_EVALUATIONS = 10
SHORT_SCAN = (-3, -1)


def directional_derivative(
    base: float,
    repeats: Sequence[float],
    scale: float,
    objective_eps: float,
    parameter_eps: float,
    max_evaluations: int = MOST_EVALUATIONS,
    more: Callable[[], bool] = lambda: False,
    enough: float = GOOD_ENOUGH,
) -> Steps:
    """The slope at t = 0 from at most `max_evaluations` values: a scan side by side, then pair by pair.

    base: f(theta). repeats: further values at the same theta. scale: natural size of t, e.g. the RMS of the
    parameter for a unit-RMS direction. objective_eps, parameter_eps: machine eps of the two dtypes.
    Fewer than SCAN_EVALUATIONS begin near eps^(1/3) of the scale instead: an ill-scaled one stays unsettled.
    enough: part of the slope; with an error of less no further step is tried.
    more: asked whether two more may be taken, where these do not settle it, up to MOST_EVALUATIONS.
    """
    early, floor = _before_stepping(base, repeats, objective_eps)
    if early:
        return early
    measured = Measurement(base, floor)
    unit = 2.0 ** round(math.log2(scale)) if scale > 0.0 and math.isfinite(scale) else 1.0
    bits = -math.log2(max(objective_eps, parameter_eps))
    low, pairs = -round(SCAN_LOW_POWER * bits), min(SCAN_PAIRS, max_evaluations // 2)
    spacing = (SCAN_HIGH_EXPONENT - low) / max(1, pairs - 1)
    exponents = sorted({round(low + spacing * k) for k in range(pairs)})
    if max_evaluations < SCAN_EVALUATIONS:
        exponents = [shift - round(bits / 3) for shift in SHORT_SCAN]
    yield from measured.evaluate([unit * 2.0**k for k in exponents])

    while not measured.good_enough(enough):
        most = max_evaluations if measured.evaluations + 2 <= max_evaluations or not more() else MOST_EVALUATIONS
        steps = measured.next_steps(unit, low - 4, 1) if measured.evaluations + 2 <= most else []
        if not steps:
            break
        yield from measured.evaluate(steps)
    return measured.estimate()


def refine(base: float, step: float, noise: float, objective_eps: float, max_evaluations: int = 6) -> Steps:
    """The slope along one more direction (a single element) near a step known to be good for others.

    step, noise: of a settled `Estimate` whose t has the same size. At most `max_evaluations` values;
    'unsettled' where three rungs cannot tell.
    """
    early, floor = _before_stepping(base, (), objective_eps)
    if early:
        return early
    measured = Measurement(base, max(floor, noise))
    unit = 2.0 ** round(math.log2(step)) if step > 0.0 and math.isfinite(step) else 1.0
    first = min(2, max_evaluations // 2)
    yield from measured.evaluate([unit, 4.0 * unit][:first])
    if max_evaluations - measured.evaluations >= 2 and not measured.good_enough():
        steps = measured.next_steps(unit, -4, 1)
        if steps:
            yield from measured.evaluate(steps)
    return measured.estimate()


def _before_stepping(base: float, repeats: Sequence[float], objective_eps: float) -> Tuple[Optional[Estimate], float]:
    """An answer that needs no step, and the least noise (objective units): ulp of the base, repeats' spread."""
    values = [float(base)] + [float(value) for value in repeats]
    nan = math.nan
    if not all(math.isfinite(value) for value in values):
        return Estimate(nan, math.inf, nan, nan, "nonfinite", 0, message="the objective itself is not finite"), 0.0
    size = max(abs(value) for value in values)
    spread = max(values) - min(values)
    if spread > REORDERING_ULPS * objective_eps * size:
        message = f"the same parameters gave {min(values):.9g} and {max(values):.9g}"
        return Estimate(nan, math.inf, spread, nan, "not_reproducible", 0, message=message), spread
    subnormal = next(least for limit, least in SMALLEST_NORMAL if objective_eps <= limit)
    return None, max(ROUNDING * objective_eps * size, spread, subnormal)

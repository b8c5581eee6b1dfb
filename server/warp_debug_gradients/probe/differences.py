"""Finite differences that know their own error: directional derivatives from few evaluations.

`directional_derivative` and `refine` are generators: they yield lists of steps t, are sent the values
f(theta + t v) in the same order, and return an `Estimate`. They never evaluate anything themselves, so the
steps of one list can run side by side in other processes. A value may be a float (nan: the evaluation
failed) or a pair (effective step, value) where the perturbed parameter was rounded:
effective step = <theta' - theta, v> / <v, v>.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Dict, Generator, List, Optional, Sequence, Tuple, Union

from .ladder import PLAUSIBLE_NOISE, Rung, RungError, best_rung, make_rung, predicted_best_step

Reply = Union[float, Tuple[float, float]]
Steps = Generator[List[float], Sequence[Reply], "Estimate"]

# Repeats that spread by at most this many ulps are reordered sums (atomics), counted as noise; beyond, the
# objective depends on something other than the parameter.
REORDERING_ULPS = 1024.0
# One rounding of the objective itself: half a spacing of its dtype.
ROUNDING = 0.5
# The scan: four pairs from eps^0.56 to 1/2 of the parameter's scale. Smaller steps drown in round-off of the
# parameter itself, and the best step of a well scaled objective, eps^(1/3), lies inside.
SCAN_PAIRS = 4
SCAN_LOW_POWER = 0.56
SCAN_HIGH_EXPONENT = -1
# A scan that starts below this fraction of the scale needs no further step to tell noise from kinks.
FINE_STEP = 2.0**-20
# Steps beyond the scan, as powers of two of the scale. Far beyond it a bounded objective looks flat whatever its
# slope, so that is tried only where the scan changed it by less than so many half ulps (the scale may be off).
WIDE_EXPONENT, WIDEST_EXPONENT = 1, 8
BARELY_CHANGED = 1024.0
# An error of this fraction of the slope finds a 1 % fault with room to spare: stop and save evaluations.
GOOD_ENOUGH = 2e-4
# Changes of the objective of up to this many half ulps at every step are too coarse to be a slope.
QUANTISED_ULPS = 32.0
# One-sided slopes that differ by this fraction of the larger are a kink worth a name.
KINK_FRACTION = 0.01
# ... and by this many times what noise does to a one-sided slope (three times its spread, sqrt(6)).
KINK_NOISE = 7.5


@dataclass(frozen=True)
class Estimate:
    """A directional derivative d/dt f(theta + t v) at t = 0, and how sure it is (floats, per unit of t).

    error: bound used as one standard error; never below noise / step. noise: of the objective, its units.
    status: settled, kink, staircase, quantised, not_reproducible, unsettled, nonfinite. A constant
    objective is settled at 0. rungs: step, central, forward, backward, difference (to the next smaller
    rung), by rising step. left, right: one-sided slopes of a kink.
    """

    value: float
    error: float
    noise: float
    step: float
    status: str
    evaluations: int
    rungs: List[Dict[str, Optional[float]]] = field(default_factory=list)
    left: Optional[float] = None
    right: Optional[float] = None
    message: str = ""


def directional_derivative(
    base: float,
    repeats: Sequence[float],
    scale: float,
    objective_eps: float,
    parameter_eps: float,
    max_evaluations: int = 15,
) -> Steps:
    """The slope at t = 0 from at most `max_evaluations` values: a scan side by side, then pair by pair.

    base: f(theta). repeats: further values at the same theta. scale: natural size of t, e.g. the RMS of the
    parameter for a unit-RMS direction. objective_eps, parameter_eps: machine eps of the two dtypes.
    """
    early, floor = _before_stepping(base, repeats, objective_eps)
    if early:
        return early
    ladder = _Ladder(base, floor, objective_eps)
    unit = 2.0 ** round(math.log2(scale)) if scale > 0.0 and math.isfinite(scale) else 1.0
    bits = -math.log2(max(objective_eps, parameter_eps))
    low, pairs = -round(SCAN_LOW_POWER * bits), min(SCAN_PAIRS, max_evaluations // 2)
    spacing = (SCAN_HIGH_EXPONENT - low) / max(1, pairs - 1)
    exponents = sorted({round(low + spacing * k) for k in range(pairs)})
    yield from ladder.evaluate([unit * 2.0**k for k in exponents])

    while max_evaluations - ladder.evaluations >= 2 and not ladder.good_enough():
        steps = ladder.next_steps(unit, low - 4, 1)
        if not steps:
            break
        yield from ladder.evaluate(steps)
    return ladder.estimate()


def refine(
    base: float, step: float, noise: float, objective_eps: float, scale: float = 0.0, max_evaluations: int = 6
) -> Steps:
    """The slope along one more direction (a single element) near a step known to be good for others.

    step, noise: of a settled `Estimate`. scale: natural size of t, 0 for the step's own neighbourhood.
    At most `max_evaluations` values; 'unsettled' where three rungs cannot tell.
    """
    early, floor = _before_stepping(base, (), objective_eps)
    if early:
        return early
    ladder = _Ladder(base, max(floor, noise), objective_eps)
    unit = 2.0 ** round(math.log2(step)) if step > 0.0 and math.isfinite(step) else 1.0
    first = min(2, max_evaluations // 2)
    yield from ladder.evaluate([unit, 4.0 * unit][:first])
    if max_evaluations - ladder.evaluations >= 2 and not ladder.good_enough():
        steps = ladder.next_steps(unit, -4, 1)
        if steps:
            yield from ladder.evaluate(steps)
    return ladder.estimate()


def _before_stepping(
    base: float, repeats: Sequence[float], objective_eps: float
) -> Tuple[Optional[Estimate], float]:
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
    return None, max(ROUNDING * objective_eps * size, spread)


class _Ladder:
    """What has been measured so far along one direction."""

    def __init__(self, base: float, floor: float, objective_eps: float) -> None:
        self.base, self.floor, self.eps = float(base), floor, objective_eps
        self.evaluations = 0
        self.rungs: List[Rung] = []
        self.tried: List[float] = []
        self.failed: List[float] = []

    def evaluate(self, steps: Sequence[float]) -> Generator[List[float], Sequence[Reply], None]:
        request = [sign * step for step in steps for sign in (1.0, -1.0)]
        replies = yield request
        if len(replies) != len(request):
            raise ValueError(f"{len(request)} steps were asked for, {len(replies)} values came back")
        self.evaluations += len(request)
        pairs = [_pair(step, reply) for step, reply in zip(request, replies)]
        for step, plus, minus in zip(steps, pairs[0::2], pairs[1::2]):
            self.tried.append(step)
            rung = make_rung(self.base, plus, minus)
            if rung is not None:
                self.rungs.append(rung)
            elif not (math.isfinite(plus[1]) and math.isfinite(minus[1])):
                self.failed.append(step)
        self.rungs.sort(key=lambda rung: rung.step)

    def change(self, rung: Rung) -> float:
        """The largest change of the objective on the rung, in its units."""
        return rung.step * max(abs(rung.forward), abs(rung.backward))

    def unchanged(self) -> bool:
        return bool(self.rungs) and not self.failed and all(self.change(rung) == 0.0 for rung in self.rungs)

    def good_enough(self) -> bool:
        best = best_rung(self.rungs, self.floor)
        if best is None or not best.counts:
            return False
        slope = abs(self.rungs[best.index].central)
        return best.error <= GOOD_ENOUGH * slope and best.largest_kink <= KINK_FRACTION * slope

    def noise_unproven(self) -> bool:
        """Whether the answer rests on noise beyond round-off that no much smaller step has confirmed."""
        best = best_rung(self.rungs, self.floor)
        return best is not None and best.noise > PLAUSIBLE_NOISE * self.floor

    def next_steps(self, unit: float, low: int, count: int) -> List[float]:
        """Up to `count` untried powers of two: beside the best rung, where the least error is predicted."""
        barely = all(self.change(rung) <= BARELY_CHANGED * self.floor for rung in self.rungs)
        grid = [unit * 2.0**k for k in range(low, (WIDEST_EXPONENT if barely else WIDE_EXPONENT) + 1)]
        grid = [step for step in grid if step < min(self.failed, default=math.inf)]
        if not grid:
            return []
        if self.unchanged():
            return [step for step in (4.0 * unit, 32.0 * unit) if step in grid and step not in self.tried][:count]
        if len(self.rungs) < 2:
            smallest = min(self.tried)
            return [step for step in reversed(grid) if step < smallest and step not in self.tried][:count]
        probe = unit * 2.0**low
        if min(self.tried) > max(probe, FINE_STEP * unit) and self.noise_unproven():
            return [probe]
        best = best_rung(self.rungs, self.floor)
        index = best.index if best else 0
        here = self.rungs[index].step
        below = self.rungs[index - 1].step if index else 0.0
        above = self.rungs[index + 1].step if index + 1 < len(self.rungs) else math.inf
        new = [step for step in grid if step not in self.tried]
        between = predicted_best_step(self.rungs, [s for s in new if below < s < above], self.floor, unit)
        beside = sorted(new, key=lambda step: abs(math.log2(step / here)))
        return (between + [step for step in beside if step not in between])[:count]

    def estimate(self) -> Estimate:
        best = best_rung(self.rungs, self.floor)
        if best is None:
            status = "nonfinite" if self.failed else "quantised"
            message = (
                f"{len(self.failed)} of {len(self.tried)} pairs of evaluations gave no finite objective"
                if self.failed
                else "the steps vanished in the parameter's own round-off"
            )
            return self._as_estimate(math.nan, math.inf, self.floor, math.nan, status, message)
        rung = self.rungs[best.index]
        if all(self.change(each) == 0.0 for each in self.rungs):
            step = self.rungs[-1].step
            message = f"the objective did not change at any step up to {step:.3g}"
            return self._as_estimate(0.0, self.floor / step, self.floor, step, "settled", message)
        status, message = self._status(best)
        sides = (rung.backward, rung.forward) if status == "kink" else (None, None)
        return self._as_estimate(best.value, best.error, best.noise, rung.step, status, message, *sides)

    def _status(self, best: RungError) -> Tuple[str, str]:
        rung = self.rungs[best.index]
        flat = [each for each in self.rungs if self.change(each) == 0.0]
        moving = [each for each in self.rungs if self.change(each) > 0.0]
        if max(self.change(each) for each in self.rungs) <= QUANTISED_ULPS * self.floor:
            return "quantised", f"no step changes the objective by more than {0.5 * QUANTISED_ULPS:.0f} of its ulps"
        first = moving[0]
        # A slope would have shown on the largest flat rung, were the objective linear up to the first change.
        if len(flat) >= 2 and flat[-1].step < first.step:
            expected = self.change(first) * flat[-1].step / first.step
            if expected > QUANTISED_ULPS * self.floor or self.change(first) > 64.0 * self.floor:
                return "staircase", f"no change up to step {flat[-1].step:.3g}, a change at {first.step:.3g}"
        if best.kink > KINK_FRACTION * max(abs(rung.forward), abs(rung.backward)):
            if best.kink > best.error and best.kink > KINK_NOISE * best.noise / rung.step:
                return "kink", f"slope {rung.backward:.6g} on the left, {rung.forward:.6g} on the right"
        if not best.counts:
            return "unsettled", "the slope keeps changing with the step"
        return "settled", f"slope {best.value:.6g} +- {best.error:.2g} at step {rung.step:.3g}"

    def _as_estimate(
        self,
        value: float,
        error: float,
        noise: float,
        step: float,
        status: str,
        message: str,
        left: Optional[float] = None,
        right: Optional[float] = None,
    ) -> Estimate:
        rows: List[Dict[str, Any]] = []
        for index, rung in enumerate(self.rungs):
            difference = abs(rung.central - self.rungs[index - 1].central) if index else None
            rows.append(
                {
                    "step": rung.step,
                    "central": rung.central,
                    "forward": rung.forward,
                    "backward": rung.backward,
                    "difference": difference,
                }
            )
        return Estimate(value, error, noise, step, status, self.evaluations, rows, left, right, message)


def _pair(step: float, reply: Reply) -> Tuple[float, float]:
    """(effective step, value) of a reply; a plain value was measured at the step asked for."""
    if isinstance(reply, (tuple, list)):
        return float(reply[0]), float(reply[1])
    return step, float(reply)

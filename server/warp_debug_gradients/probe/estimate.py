"""What has been measured along one direction, where to measure next, and what it amounts to."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Dict, Generator, List, Optional, Sequence, Tuple, Union

from .ladder import PLAUSIBLE_NOISE, Rung, RungError, best_rung, make_rung, predicted_best_step

Reply = Union[float, Tuple[float, float]]

# A scan that starts below this fraction of the scale needs no further step to tell noise from kinks.
FINE_STEP = 2.0**-20
# Steps beyond the scan, as powers of two of the scale. Far beyond it a bounded objective looks flat whatever its
# slope, so that is tried only where the scan changed it by less than so many half ulps (the scale may be off).
WIDE_EXPONENT, WIDEST_EXPONENT = 1, 8
BARELY_CHANGED = 1024.0
# An error of this fraction of the slope finds a 1 % fault with room to spare: stop and save evaluations.
GOOD_ENOUGH = 2e-4
# ... and this one of a slow program, whose check is a brief one: it finds 2 %.
BRIEFLY_ENOUGH = 4e-3
# Changes of up to this many times the least noise (half an ulp) at every step are too coarse to be a slope.
QUANTISED = 32.0
# A change that would show this many times the least noise on a rung where nothing changed is a jump.
JUMP = 4.0
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


class Measurement:
    """What has been measured so far along one direction."""

    def __init__(self, base: float, floor: float) -> None:
        self.base, self.floor = float(base), floor
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
        pairs = [as_pair(step, reply) for step, reply in zip(request, replies)]
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

    def good_enough(self, part: float = GOOD_ENOUGH) -> bool:
        best = best_rung(self.rungs, self.floor)
        if best is None or not best.counts:
            return False
        slope = abs(self.rungs[best.index].central)
        return best.error <= part * slope and best.largest_kink <= KINK_FRACTION * slope

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
        if max(self.change(each) for each in self.rungs) <= QUANTISED * self.floor:
            return "quantised", f"no step changes the objective by more than {QUANTISED:.0f} times {self.floor:.2g}"
        first = moving[0]
        # At a smooth minimum the change falls with h^2 down to the flat rung; more than that is a jump.
        if len(flat) >= 2 and flat[-1].step < first.step:
            expected = self.change(first) * (flat[-1].step / first.step) ** 2
            if expected > JUMP * self.floor:
                return "staircase", f"no change up to step {flat[-1].step:.3g}, a change at {first.step:.3g}"
        seen = (
            KINK_FRACTION * max(abs(rung.forward), abs(rung.backward)),
            best.error,
            KINK_NOISE * best.noise / rung.step,
        )
        if best.kink > max(seen):
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
        smaller = [None, *self.rungs[:-1]]
        rows: List[Dict[str, Optional[float]]] = [
            {
                "step": rung.step,
                "central": rung.central,
                "forward": rung.forward,
                "backward": rung.backward,
                "difference": None if low is None else abs(rung.central - low.central),
            }
            for rung, low in zip(self.rungs, smaller)
        ]
        return Estimate(value, error, noise, step, status, self.evaluations, rows, left, right, message)


def as_pair(step: float, reply: Reply) -> Tuple[float, float]:
    """(effective step, value) of a reply; a plain value was measured at the step asked for."""
    if isinstance(reply, (tuple, list)):
        return float(reply[0]), float(reply[1])
    return step, float(reply)

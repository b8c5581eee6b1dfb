"""Rungs of a difference ladder: what each step says, how noisy the objective is, how far off a rung may be.

Pure arithmetic on measured values; nothing here evaluates the objective. Everywhere `t` is the position
along the direction, f(0) = `base`, a rung is a pair f(+t), f(-t), and slopes are per unit of t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import List, Optional, Sequence, Tuple

# A central difference errs by M3 h^2 / 6, so a halved step shrinks neighbouring differences 4x. Higher
# orders blur that; twice the expected difference is still counted as falling.
DECAY_SLACK = 2.0
# A difference between rungs of up to this many times the measured noise is explained by noise.
NOISE_MULTIPLE = 3.0
# f(+t) - 2 f(0) + f(-t) adds 1 + 4 + 1 = 6 variances; f(+t) - f(-t) adds 2, halved once by 2h.
SECOND_DIFFERENCE_SPREAD = math.sqrt(6.0)
CENTRAL_DIFFERENCE_SPREAD = math.sqrt(2.0)
# Asymmetry of one-sided slopes is extrapolated to step 0 from a larger rung only up to this many times the
# step: beyond, the fourth derivative looks like a kink.
KINK_SPACING = 4.0


@dataclass(frozen=True)
class Rung:
    """One pair of evaluations: the step and the slopes it gives (all float, per unit of t)."""

    step: float
    central: float
    forward: float
    backward: float

    @property
    def asymmetry(self) -> float:
        """Forward minus backward slope: h f'' where the objective is smooth, constant in h on a kink."""
        return self.forward - self.backward

    @property
    def second_difference(self) -> float:
        """f(+h) - 2 f(0) + f(-h), in units of the objective: h^2 f'' plus noise."""
        return self.asymmetry * self.step


@dataclass(frozen=True)
class RungError:
    """How far the central slope of a rung may be from the derivative; `kink` is |right - left| at step 0."""

    index: int
    error: float
    noise: float
    kink: float
    counts: bool


def make_rung(base: float, plus: Tuple[float, float], minus: Tuple[float, float]) -> Optional[Rung]:
    """The rung from two (effective step, value) pairs, or None where it says nothing.

    A rounded parameter makes the two steps unequal; the weights keep the central slope exact on
    quadratics: (F |t-| + B t+) / (t+ + |t-|).
    """
    right, left = plus[0], -minus[0]
    if not (right > 0.0 and left > 0.0 and math.isfinite(plus[1]) and math.isfinite(minus[1])):
        return None
    forward, backward = (plus[1] - base) / right, (base - minus[1]) / left
    central = (forward * left + backward * right) / (left + right)
    if not math.isfinite(central):
        return None
    return Rung(0.5 * (left + right), central, forward, backward)


def noise_below(rungs: Sequence[Rung], index: int, below: int, floor: float) -> float:
    """Noise of the objective (one standard deviation, its own units), seen by the rungs under `below`.

    If the slope of rung `index` is right, every smaller rung differs from it by noise alone: that is
    h_j |D_j - D| and the second difference after its curvature, h^2 f'', is taken out.
    """
    reference, worst = rungs[index], floor
    for rung in rungs[:below]:
        ratio = rung.step / reference.step
        slope = rung.step * abs(rung.central - reference.central) * CENTRAL_DIFFERENCE_SPREAD
        bend = abs(rung.second_difference - reference.second_difference * ratio * ratio) / SECOND_DIFFERENCE_SPREAD
        worst = max(worst, slope, bend)
    return worst


def kink_between(near: Rung, far: Rung, noise: float) -> float:
    """|right slope - left slope| extrapolated to step 0 from two rungs, less what noise explains."""
    gap = far.step - near.step
    intercept = (near.asymmetry * far.step - far.asymmetry * near.step) / gap
    doubt = 2.0 * SECOND_DIFFERENCE_SPREAD * noise / near.step * (far.step / gap) * 0.5
    return max(0.0, abs(intercept) - doubt)


def rung_error(rungs: Sequence[Rung], index: int, floor: float) -> RungError:
    """The error of rung `index` from its neighbours; `floor` is the least noise (objective units).

    It counts if the difference to the next smaller rung fell as h^2 does or is within noise.
    """
    rung = rungs[index]
    noise = noise_below(rungs, index, index, floor)
    lower = rungs[index - 1] if index > 0 else None
    upper = rungs[index + 1] if index + 1 < len(rungs) else None
    up = abs(rung.central - upper.central) if upper else None
    down = abs(rung.central - lower.central) if lower else None

    # The first term of the truncation error follows from the next larger rung only where h^2 is verified.
    truncation, counts, kink = 0.0, False, 0.0
    if down is not None and lower is not None:
        without_lower = noise_below(rungs, index, index - 1, floor)
        in_noise = down <= NOISE_MULTIPLE * without_lower / lower.step
        falls = False
        if up is not None and upper is not None:
            expected = (rung.step**2 - lower.step**2) / (upper.step**2 - rung.step**2)
            falls = down <= DECAY_SLACK * expected * up
        counts = in_noise or falls
        truncation = 0.0 if in_noise else down
        kink = max(kink, kink_between(lower, rung, noise))
    if up is not None and upper is not None:
        if lower is None:
            counts = up <= NOISE_MULTIPLE * noise / rung.step
        ratio = (upper.step / rung.step) ** 2 - 1.0
        truncation = max(truncation, up / min(ratio, NOISE_MULTIPLE) if counts else 2.0 * up)
        if upper.step <= KINK_SPACING * rung.step:
            kink = max(kink, kink_between(rung, upper, noise))
    return RungError(index, noise / rung.step + truncation + 0.5 * kink, noise, kink, counts)


def best_rung(rungs: Sequence[Rung], floor: float) -> Optional[RungError]:
    """The rung with the least error among those that count, else among all; None without two rungs."""
    if len(rungs) < 2:
        return None
    errors = [rung_error(rungs, index, floor) for index in range(len(rungs))]
    counted = [error for error in errors if error.counts]
    return min(counted or errors, key=lambda error: error.error)


def predicted_best_step(rungs: Sequence[Rung], candidates: Sequence[float], floor: float) -> List[float]:
    """`candidates` (steps, t) by rising predicted error e/h + M3 h^2/6, whose least is near (3e/M3)^(1/3).

    The truncation part is read off the measured rungs: how far a rung is from every smaller one beyond
    their noise; between rungs it falls with h^2 from the larger one, above the largest it grows so.
    """
    noise = noise_below(rungs, 1, 1, floor) if len(rungs) > 1 else floor
    excess = []
    for index, rung in enumerate(rungs):
        gaps = [abs(rung.central - low.central) - 2.0 * noise / low.step for low in rungs[:index]]
        excess.append(max([0.0] + gaps))

    def predicted(step: float) -> float:
        low = max([e for e, rung in zip(excess, rungs) if rung.step <= step], default=0.0)
        above = [(e, rung.step) for e, rung in zip(excess, rungs) if rung.step >= step]
        e, reference = min(above, key=lambda pair: pair[1]) if above else (excess[-1], rungs[-1].step)
        return noise / step + max(low, e * (step / reference) ** 2)

    return sorted(candidates, key=predicted)

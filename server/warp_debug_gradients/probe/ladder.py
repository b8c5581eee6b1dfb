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
# The largest of six or more samples (two a rung) is about 1.9 standard deviations; 1.3 are kept.
MANY_RUNGS, MANY_RUNGS_FACTOR = 3, 0.7
# Richardson's combination of two rungs carries 4/3 e/h + 1/3 e/2h of noise.
EXTRAPOLATED_NOISE = 1.5
# One-sided slopes differ by noise, too: two standard deviations of the extrapolation pass for it.
KINK_DOUBT = 2.0
# Up to this many times the least noise passes for the round-off of a sum. More has to show at the smallest
# step, at least one part in VISIBLE_NOISE of it.
PLAUSIBLE_NOISE = 16.0
VISIBLE_NOISE = 3.0


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
    """The derivative by one rung (its central slope, or extrapolated from it) and how far off that may be.

    kink, largest_kink: the least and the largest |right - left| slope at step 0 that was not ruled out.
    """

    index: int
    value: float
    error: float
    noise: float
    kink: float
    largest_kink: float
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
    h_j |D_j - D|, and the second difference after what grows like curvature (h^2) or a kink (h) is taken out.
    """
    reference = rungs[index]
    seen = max([0.0] + [_scatter(rung, reference) for rung in rungs[:below]])
    return max(floor, seen * (MANY_RUNGS_FACTOR if below >= MANY_RUNGS else 1.0))


def _scatter(rung: Rung, reference: Rung) -> float:
    """The noise that makes `rung` differ from a right and larger `reference`."""
    ratio = rung.step / reference.step
    slope = rung.step * abs(rung.central - reference.central) * CENTRAL_DIFFERENCE_SPREAD
    curved = abs(rung.second_difference - reference.second_difference * ratio * ratio)
    kinked = abs(rung.second_difference - reference.second_difference * ratio)
    return max(slope, min(curved, kinked) / SECOND_DIFFERENCE_SPREAD)


def _unproven(rungs: Sequence[Rung], index: int, floor: float) -> float:
    """How far smaller rungs are from rung `index` beyond noise that shows at the smallest step as well.

    Slopes across kinks are bounded, so h |D_h - D| shrinks with h; noise does not. What the smallest step
    does not show may be a kink, and the smaller rung may be the right one.
    """
    rung = rungs[index]
    shown = max(PLAUSIBLE_NOISE * floor, VISIBLE_NOISE * _scatter(rungs[0], rung))
    return max([0.0] + [abs(low.central - rung.central) - shown / low.step for low in rungs[:index]])


def kink_between(near: Rung, far: Rung, noise: float) -> Tuple[float, float]:
    """|right slope - left slope| extrapolated to step 0 from two rungs, and what noise explains of it."""
    gap = far.step - near.step
    intercept = (near.asymmetry * far.step - far.asymmetry * near.step) / gap
    doubt = KINK_DOUBT * SECOND_DIFFERENCE_SPREAD * noise / near.step * (far.step / gap)
    return abs(intercept), doubt


def _kink(rungs: Sequence[Rung], index: int, noise: float) -> Tuple[float, float]:
    """Least and largest |right slope - left slope| at step 0 that the rungs around `index` allow."""
    rung = rungs[index]
    pairs = [(near, rung) for near in rungs[:index]]
    pairs += [(rung, far) for far in rungs[index + 1 :] if index == 0 or far.step <= KINK_SPACING * rung.step][:1]
    seen = [kink_between(near, far, noise) for near, far in pairs]
    least = max([0.0] + [size - doubt for size, doubt in seen])
    largest = abs(rung.asymmetry) + SECOND_DIFFERENCE_SPREAD * noise / rung.step
    return least, max(least, min([largest] + [size + doubt for size, doubt in seen]))


def rung_error(rungs: Sequence[Rung], index: int, floor: float) -> RungError:
    """The error of rung `index` from its neighbours; `floor` is the least noise (objective units).

    It counts if the difference to the next smaller rung fell as h^2 does or is within noise.
    """
    rung = rungs[index]
    lower = rungs[index - 1] if index > 0 else None
    upper = rungs[index + 1] if index + 1 < len(rungs) else None
    # Between the two nearest rungs truncation tells more than noise does: leave it out where others can say.
    noise = noise_below(rungs, index, index - 1 if index >= 3 else index, floor)
    if lower is None and upper is not None:
        noise = max(floor, _scatter(rung, upper))

    above = math.inf
    if upper is not None:
        above = abs(rung.central - upper.central)
    if lower is None:
        counts = above <= NOISE_MULTIPLE * noise / rung.step
        truncation = above
    else:
        down = abs(rung.central - lower.central)
        expected = 0.0
        if upper is not None:
            expected = (rung.step**2 - lower.step**2) / (upper.step**2 - rung.step**2) * above
        falls = down <= DECAY_SLACK * expected
        in_noise = down <= NOISE_MULTIPLE * noise_below(rungs, index, index - 1, floor) / lower.step
        counts = falls or in_noise
        # Whatever bends the slope by `down` between two steps bends it by less below the smaller one.
        below = (down + noise / lower.step) / (1.0 - lower.step / rung.step)
        # Where h^2 is verified the error is above / ((h_u/h)^2 - 1); never less than a third is claimed.
        if counts and upper is not None:
            above /= min((upper.step / rung.step) ** 2 - 1.0, NOISE_MULTIPLE)
        truncation = min(max(above, 0.0 if in_noise else down), below)
    value, spread = rung.central, noise / rung.step
    if counts and lower is not None:
        extrapolated = _extrapolated(rungs, index)
        if extrapolated is not None and extrapolated[1] + EXTRAPOLATED_NOISE * spread < truncation + spread:
            value, truncation = extrapolated
            spread *= EXTRAPOLATED_NOISE
    if lower is not None:
        truncation = max(truncation, _unproven(rungs, index, floor))
    least, largest = _kink(rungs, index, noise)
    # A kink at step 0 shows on larger rungs first, where noise hides less; one further out leaves this rung,
    # whose own sides bound it, alone.
    for larger in range(index + 1, len(rungs)):
        least = max(least, min(largest, _kink(rungs, larger, noise_below(rungs, larger, larger, floor))[0]))
    return RungError(index, value, spread + truncation + 0.5 * least, noise, least, largest, counts)


def _extrapolated(rungs: Sequence[Rung], index: int) -> Optional[Tuple[float, float]]:
    """Richardson's slope D + (D - D_u) / ((h_u/h)^2 - 1) and its change from the next larger rung on.

    Where the error falls with h instead of h^2 that change is still the error that is left.
    """
    chain = rungs[index : index + 3]
    if len(chain) < 3 or any(far.step > KINK_SPACING * near.step for near, far in zip(chain, chain[1:])):
        return None
    here, there = (
        near.central + (near.central - far.central) / ((far.step / near.step) ** 2 - 1.0)
        for near, far in zip(chain, chain[1:])
    )
    return here, abs(here - there)


def best_rung(rungs: Sequence[Rung], floor: float) -> Optional[RungError]:
    """The rung with the least error among those that count, else among all; None without two rungs."""
    if len(rungs) < 2:
        return None
    errors = [rung_error(rungs, index, floor) for index in range(len(rungs))]
    counted = [error for error in errors if error.counts]
    return min(counted or errors, key=lambda error: error.error)


def predicted_best_step(rungs: Sequence[Rung], candidates: Sequence[float], floor: float, unit: float) -> List[float]:
    """`candidates` (steps, t) by rising predicted error e/h + M3 h^2/6, whose least is near (3e/M3)^(1/3).

    The truncation part is read off the measured rungs: how far a rung is from every smaller one beyond
    their noise; between rungs it falls with h^2 from the larger one, above the largest it grows so. Where
    nothing is seen yet, M3 is that of an objective that bends over `unit`: slope / unit^2.
    """
    noise = noise_below(rungs, 1, 1, floor) if len(rungs) > 1 else floor
    slope = max([0.0] + [abs(rung.central) - 2.0 * noise / rung.step for rung in rungs])
    excess = []
    for index, rung in enumerate(rungs):
        gaps = [abs(rung.central - low.central) - 2.0 * noise / low.step for low in rungs[:index]]
        excess.append(max([0.0] + gaps))

    def predicted(step: float) -> float:
        low = max([e for e, rung in zip(excess, rungs) if rung.step <= step], default=0.0)
        above = [(e, rung.step) for e, rung in zip(excess, rungs) if rung.step >= step]
        e, reference = min(above, key=lambda pair: pair[1]) if above else (excess[-1], rungs[-1].step)
        seen = max(low, e * (step / reference) ** 2)
        return noise / step + max(seen, slope * (step / unit) ** 2 / 6.0 if step > rungs[-1].step else 0.0)

    return sorted(candidates, key=predicted)

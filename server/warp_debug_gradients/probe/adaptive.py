"""Steps of optimizers that scale each element by its gradient's own history (Adam, AdamW, RMSprop), from a gradient's series.

Such a step is no multiple of any gradient. But from all gradients so far it follows up to the learning rate: so the steps
tell whose series the optimizer was given, the iterations' own or that of the iterations before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

DECAYS = [(0.9, 0.999), (0.9, 0.99), (0.9, 0.95), (0.95, 0.999), (0.8, 0.999), (0.5, 0.999), (0.0, 0.9), (0.0, 0.99)]
EPSILONS = [(1e-8, True), (1e-8, False), (1e-6, True), (1e-10, True)]  # and whether it is added to the corrected moment
FEWEST, MOST = 6, 500  # elements: fewer fit anything, more tell nothing new
LONGEST = 60  # iterations that are looked at
AGREE = 3  # steps that must fit, with the same settings
FRESH = 2  # the step from which on the series differ in more than their signs

Rest = Callable[[np.ndarray, np.ndarray, list[np.ndarray]], float]


@dataclass
class Series:
    """Both moments of one series of gradients, for every pair of decay rates."""

    moments: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    steps: int = 0

    def add(self, gradient: np.ndarray) -> None:
        """The next gradient of the series."""
        known = self.moments or [(np.zeros_like(gradient), np.zeros_like(gradient)) for _ in DECAYS]
        self.moments = [
            (a * m + (1.0 - a) * gradient, b * v + (1.0 - b) * gradient * gradient)
            for (a, b), (m, v) in zip(DECAYS, known, strict=True)
        ]
        self.steps += 1

    def directions(self) -> list[np.ndarray]:
        """The step that each setting would take now, up to its learning rate."""
        found: list[np.ndarray] = []
        for (_, b), (m, v) in zip(DECAYS, self.moments, strict=True):
            root, correction = np.sqrt(v), np.sqrt(1.0 - b**self.steps)
            for epsilon, corrected in EPSILONS:
                below = root + epsilon * (correction if corrected else 1.0)
                found.append(np.divide(m, below, out=np.zeros_like(m), where=below > 0.0))
        return found


class Adaptive:
    """Whether such an optimizer was given the iterations' own gradients, or those of the iterations before."""

    def __init__(self) -> None:
        self.own = Series()
        self.late = [Series(), Series()]  # which begins with no gradient at all, or without a step
        self.fits: dict[tuple[int, int], int] = {}  # by series and setting: the steps that only it explains
        self.follows_own = False
        self.seen = 0
        self.chosen: np.ndarray | None = None  # the elements that are looked at

    def judge(
        self, step: np.ndarray, own: np.ndarray | None, previous: np.ndarray | None, tolerance: float, apart: float,
        rest: Rest, besides: np.ndarray,
    ) -> None:  # fmt: skip
        """One step of the parameter, whose own gradient is `own`; `besides` may have a part in it (weight decay)."""
        self.stay(own, previous)
        if self.chosen is None or self.seen <= FRESH or previous is None or self.seen > LONGEST or self.follows_own:
            return
        step, besides = step[self.chosen], besides[self.chosen]
        if not np.any(step):
            return
        if min(rest(step, d, [besides]) for d in self.own.directions()) < apart:
            self.follows_own = True
            return
        for which, series in enumerate(self.late):
            for setting, direction in enumerate(series.directions()):
                fits = rest(step, direction, [besides]) < tolerance
                self.fits[which, setting] = self.fits.get((which, setting), 0) + fits

    def stay(self, own: np.ndarray | None, previous: np.ndarray | None) -> None:
        """An iteration's gradients; the parameter need not have moved."""
        self.seen += 1
        fit = own is not None and own.size >= FEWEST and (previous is None or previous.shape == own.shape)
        if own is None or not fit or self.seen > LONGEST or self.follows_own:
            self.seen = LONGEST + 1  # a series with a gap is none
            return
        if self.chosen is None:
            self.chosen = np.unique(np.linspace(0, own.size - 1, min(own.size, MOST)).astype(int))
        self.own.add(own[self.chosen])
        self.late[0].add(np.zeros(len(self.chosen)) if previous is None else previous[self.chosen])
        if previous is not None:
            self.late[1].add(previous[self.chosen])

    def is_late(self) -> bool:
        """Whether one setting explains the steps by the gradients of the iterations before, and none by their own."""
        return not self.follows_own and max(self.fits.values(), default=0) >= AGREE

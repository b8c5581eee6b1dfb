"""Which gradient did the update follow? The step that the parameter took is asked.

What the host does with a gradient after it has read it is not seen: it may use the one of the iteration before (read after the
update, handed on through a list), or add up every reading of a buffer that itself adds up. Such a step is a multiple of that
other gradient, to the last digits, and no multiple of the iteration's own. Momentum and weight decay may have a part in it.
The steps of Adam and its like are computed from each series of gradients (`adaptive.py`).
Where all these gradients are parallel, the learning rate tells: it is the same in every step for the one that is followed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from .adaptive import Adaptive

Followed = Literal["previous", "readings"]
OTHERS: tuple[Followed, ...] = ("previous", "readings")
EXACT = 1e-5  # of the step, what a gradient that it follows leaves unexplained, besides round-off
ROUND_OFF = 4.0  # in units of the parameter's last digit
APART = 1e-3  # of the step, what the iteration's own gradient must leave unexplained, and how many times the tolerance
TIMES = 20.0
VOTES = 2  # one iteration may be chance
MOST_SCALARS = 100_000
FREE = 2  # directions that must be left besides the fitted ones
SETTLED = 3  # the step from which on rates are compared: a first one of nothing at all joins two iterations
STEADY = 1e-4  # how much the rate of a gradient that is followed may vary, in parts of it
VARIES = 0.05  # how much that of another one must vary
RATES = 4  # steps with a rate that it takes


@dataclass
class Follower:
    """One parameter's steps as they happen: told of readings, zeroings and backward passes, it counts what fits."""

    x: np.ndarray | None = None  # the parameter at the iteration's first backward
    gradient: np.ndarray | None = None  # what the last backward left
    readings: list[np.ndarray] = field(default_factory=list)  # the first one after each backward
    later: list[np.ndarray] = field(default_factory=list)  # others after the same backward: it was edited on purpose
    added: np.ndarray | None = None  # the gradients of the stretches that ended with a zeroing
    previous: np.ndarray | None = None  # what the iteration before used
    step: np.ndarray | None = None  # the one before
    steps: int = 0
    unread: bool = False  # a backward since the last reading
    before_zero: tuple[np.ndarray | None, np.ndarray, bool] | None = None  # added, gradient, unread
    votes: dict[Followed, int] = field(default_factory=lambda: {"previous": 0, "readings": 0})
    closer: int = 0  # steps that the previous gradient explains better than the own, by less than a vote asks for
    own: int = 0  # iterations that followed their own gradient and no other
    rates: list[dict[str, float]] = field(default_factory=list)  # of steps that are parallel to all gradients
    adaptive: Adaptive = field(default_factory=Adaptive)

    def read(self, gradient: np.ndarray | None) -> None:
        """The buffer was read."""
        if gradient is None or self.gradient is None or gradient.size > MOST_SCALARS:
            return
        (self.readings if self.unread else self.later).append(gradient.astype(np.float64))
        self.unread = False

    def zeroed(self) -> None:
        """The buffer was zeroed: what comes now is added to what was read before."""
        if self.gradient is not None:
            self.before_zero = (self.added, self.gradient, self.unread)
            self.added = _sum([self.added, self._last()])
            self.gradient, self.unread = None, False

    def put_back(self) -> None:
        """What the buffer held before it was zeroed is in it again."""
        if self.before_zero is not None:
            self.added, self.gradient, self.unread = self.before_zero
            self.before_zero = None

    def backward(self, x: np.ndarray, gradient: np.ndarray | None) -> None:
        """A backward pass ended, at these values of the parameter."""
        if gradient is None or x.size > MOST_SCALARS or x.size != gradient.size:
            return
        if self.x is not None and self.x.shape == x.shape and not np.array_equal(x, self.x):
            self._judge(x)
            self.begin()
        elif self.x is not None and (self.x.shape != x.shape or self._repeats(gradient)):
            self.adaptive.stay(self.used(), self.previous)
            self.begin()
        self.x = x.copy()
        self.gradient, self.unread = gradient.astype(np.float64), True

    def _repeats(self, gradient: np.ndarray) -> bool:
        """Whether the buffer, zeroed since, holds the same again: the update between was a step of nothing at all."""
        return self.gradient is None and self.added is not None and np.array_equal(self.added, gradient)

    def begin(self) -> None:
        """A new iteration: what was used so far is the previous one's."""
        self.previous = self.used()
        self.readings, self.later = [], []
        self.added = self.gradient = self.x = None

    def used(self) -> np.ndarray | None:
        """What the iteration's update should have used."""
        return _sum([self.added, self._last() if self.gradient is not None else None])

    def summed(self) -> np.ndarray | None:
        """All readings of the iteration, added up."""
        return _sum(self.readings) if len(self.readings) > 1 else None

    def answer(self, seen: bool = False) -> Followed | None:
        """The other gradient that the steps followed, if they did so more than once and never the iteration's own.

        seen: the program reads the previous gradient again. What the own one leaves unexplained may then be little: where
        gradients change slowly, it and the step before (momentum) come close to any of them.
        """
        if seen and self.closer >= VOTES and not self.own:
            return "previous"
        found: list[Followed] = [which for which in OTHERS if self.votes[which] >= VOTES]
        if self.own or len(found) > 1:
            return None
        if not found and self.adaptive.is_late():
            return "previous"
        return found[0] if found else self._steady()

    def _last(self) -> np.ndarray | None:
        return self.readings[-1] if self.readings and not self.unread else self.gradient

    def _steady(self) -> Followed | None:
        """The other gradient whose rate is the same in all steps, where that of the iteration's own is not."""
        if len(self.rates) < RATES or _spread([r["own"] for r in self.rates]) < VARIES:
            return None
        found: list[Followed] = [
            w for w in OTHERS if all(w in r for r in self.rates) and _spread([r[w] for r in self.rates]) < STEADY
        ]
        return found[0] if len(found) == 1 else None

    def _judge(self, x: np.ndarray) -> None:
        """Whose multiple is the step to `x`?"""
        assert self.x is not None
        step = x.astype(np.float64) - self.x.astype(np.float64)
        before, self.step, self.steps = self.step, step, self.steps + 1
        size = float(np.linalg.norm(step))
        digit = float(np.finfo(x.dtype).eps) * float(np.linalg.norm(x))
        tolerance = EXACT + ROUND_OFF * digit / max(size, 1e-300)
        apart = max(APART, TIMES * tolerance)
        if np.isfinite(size):
            start = self.x.astype(np.float64)
            self.adaptive.judge(step, self.used(), self.previous, tolerance, apart, unexplained, start)
        own = [g for g in (self.used(), self.gradient, *self.readings, *self.later) if g is not None]
        if not np.isfinite(size) or not own or before is None:
            return
        other: dict[Followed, np.ndarray | None] = {"previous": self.previous, "readings": self.summed()}
        known = {name: g for name, g in {"own": self.used(), **other}.items() if g is not None and np.any(g)}
        judged = "own" in known and self.steps >= SETTLED
        if judged and all(unexplained(step, g, []) < tolerance < STEADY for g in known.values()):
            self.rates.append({name: float(step @ g) / float(g @ g) for name, g in known.items()})
        alone = unexplained(step, self.previous, []) if self.previous is not None else 1.0
        bare = alone < tolerance and all(unexplained(step, g, []) >= apart for g in own)
        besides = [before, self.x.astype(np.float64)]
        left = min(unexplained(step, g, besides) for g in own)
        fits: dict[Followed, float] = {
            which: 1.0 if g is None else unexplained(step, g, besides) for which, g in other.items()
        }
        self.closer += bare or (left >= TIMES * tolerance and fits["previous"] < tolerance)
        if left >= apart:
            for which, rest in fits.items():
                self.votes[which] += rest < tolerance
        elif left < tolerance and any(g is not None and fits[which] > APART for which, g in other.items()):
            self.own += 1


def unexplained(step: np.ndarray, gradient: np.ndarray, others: Sequence[np.ndarray]) -> float:
    """The part of the step that no multiple of the gradient explains, with as many of the others as the dimension bears."""
    if gradient.shape != step.shape or not np.all(np.isfinite(gradient)) or not np.any(gradient):
        return 1.0
    room = max(step.size - 1 - FREE, 0)
    columns = np.stack([gradient, *others[:room]], axis=1)
    columns = columns / np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
    weights = np.linalg.lstsq(columns, step, rcond=None)[0]
    rest = float(np.linalg.norm(step - columns @ weights)) / float(np.linalg.norm(step))
    return rest if weights[0] != 0.0 else 1.0


def _spread(values: Sequence[float]) -> float:
    """The range of the values in parts of their mean."""
    return float(np.ptp(values)) / max(abs(float(np.mean(values))), 1e-300)


def _sum(parts: Sequence[np.ndarray | None]) -> np.ndarray | None:
    known = [p for p in parts if p is not None]
    if not known or any(p.shape != known[0].shape for p in known):
        return None
    return np.sum(np.stack(known), axis=0)

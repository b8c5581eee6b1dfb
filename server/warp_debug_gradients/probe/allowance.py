"""What the time allows: how much a check of a slow program measures, and how it says what it left out. Pure."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Callable, Optional

from .evaluator import EVALUATIONS, Reply

SLACK = 1.2  # an evaluation may take this much longer than those before it
FEWEST = 4  # evaluations along a direction: two steps, which is the least that tells its own error
BRIEF = 8  # ... and the most where the time does not allow the whole ladder
SPARING = 12  # evaluations' time that a sparing check may take: a brief one fits, and little else
CONFIRMING, BRIEFLY = 12, 2  # evaluations that a confirmation takes, and a brief one


@dataclass(frozen=True)
class Allowance:
    """directions, and evaluations along each. brief: few step sizes, and a brief confirmation of a disagreement."""

    directions: int
    evaluations: int
    brief: bool = False


def affordable(seconds: float, cost: float) -> float:
    """Evaluations of `cost` seconds that fit into `seconds`."""
    return math.inf if math.isinf(seconds) else max(0.0, seconds) / max(cost, 1e-6)


def allowance(wanted: int, seconds: float, cost: float) -> Optional[Allowance]:
    """What fits of `wanted` directions; None where not even two step sizes along one of them do."""
    count = affordable(seconds, cost)
    if count >= EVALUATIONS * wanted:
        return Allowance(wanted, EVALUATIONS)
    if count >= EVALUATIONS + CONFIRMING:
        return Allowance(1, EVALUATIONS)
    count /= SLACK
    if count < FEWEST:
        return None
    return Allowance(1, min(BRIEF, max(FEWEST, int(count) - BRIEFLY)), brief=True)


def another_step(seconds: float, cost: float) -> bool:
    """Whether a brief check may take one more step size: two evaluations, and still be confirmed."""
    return affordable(seconds, cost) / SLACK >= 2 + BRIEFLY


def sparingly(remaining: Callable[[], float], cost: float) -> Callable[[], float]:
    """The time that is left, or what a sparing check may take of it from now on, whichever is less."""
    ends = time.perf_counter() + SPARING * cost
    return lambda: min(remaining(), ends - time.perf_counter())


def spared(cost: float, taken: int) -> str:
    """What a sparing check leaves out, for its answer. taken: evaluations along the direction."""
    return (
        f"more than one direction, at {taken // 2} step sizes: an evaluation takes {cost:.2g} s, and a diagnosis measures "
        "so slow a program sparingly; gradcheck_full_horizon measures it whole"
    )


def seconds_of_one(seconds: float, reference: Reply, repeats: list[Reply]) -> float:
    """What one evaluation costs, from the first ones, which took `seconds` together, side by side where there are cores.

    The reference is watched and runs the backward passes as well: it takes a multiple.
    """
    own = [float(reply.get("seconds") or 0.0) for reply in (reference, *repeats)]
    if min(own) <= 0.0:
        return seconds / len(own)
    return seconds * (sum(own[1:]) / len(repeats)) / sum(own)


def left_out(wanted: int, allowed: Allowance, cost: float, taken: int) -> list[str]:
    """What the allowance leaves out of a check, for its answer. taken: evaluations along a direction."""
    said = []
    if allowed.directions < wanted:
        said.append(f"{wanted - allowed.directions} of {wanted} random directions, for lack of time")
    if allowed.brief and taken < EVALUATIONS - 1:
        said.append(
            f"more than {taken // 2} step sizes: an evaluation takes {cost:.2g} s, and the time allowed {taken} of them "
            f"along the direction (a whole ladder takes {EVALUATIONS})"
        )
    return said


def too_slow(seconds: float, cost: float) -> str:
    """Why nothing could be measured."""
    return (
        f"one evaluation of the objective takes {cost:.2g} s, and the least that tells its own error are {FEWEST}; "
        f"{max(0.0, seconds):.2g} s were left for them"
    )

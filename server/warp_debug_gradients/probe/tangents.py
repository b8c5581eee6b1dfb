"""How far the recorded runs put the tangent of a launch's results off: the part of its jump that is no error of its adjoint.

Three runs a step apart show the round-off of everything that is computed in between: the sum of many numbers, say,
that nearly cancel. One small step tells it badly. The launch alone can be moved along the same direction by larger
steps, which tell their own error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from . import isolate
from .arrays import float_parts
from .digits import rms
from .evaluator import SEED, typical_size
from .roughness import roughness

if TYPE_CHECKING:
    from .isolate_launch import Launch

CENTRAL = math.sqrt(0.5)  # noise of (f(+h) - f(-h)) / 2, in parts of that of f

ByRoot = dict[int, np.ndarray]  # number of a root -> its bytes
Key = tuple[int, int, int]  # root, position of the argument, part
Moves = dict[Key, np.ndarray]


@dataclass
class Perturbed:
    """What the runs at +step and -step read and left at one launch."""

    read: list[ByRoot]
    left: list[ByRoot]
    step: float


def noise_of(launch: Launch, perturbed: Perturbed) -> float | None:
    """Of <Ā, Ẏ>, per unit of the ledger's direction; None where it cannot be told. `launch` has been measured."""
    if any(content.keys() < launch.before.keys() for content in (*perturbed.read, *perturbed.left)):
        return None
    moves = _moves(launch, perturbed.read)
    if not moves or not all(np.isfinite(half).all() for _, half in moves.values()):
        return None
    natural = 1.0 / max(rms(half) / typical_size(there) for there, half in moves.values())
    halves = {key: half for key, (_, half) in moves.items()}
    length = sum(float(np.sum(half**2)) for half in halves.values())
    random = np.random.default_rng(SEED)
    anywhere = {key: typical_size(there) * random.standard_normal(there.shape) for key, (there, _) in moves.items()}

    def make(t: float, along: Moves) -> Moves:
        """Makes the launch t times as far along; what rounding left of the way, by array."""
        start, left = {n: content.copy() for n, content in launch.before.items()}, {}
        for key, (there, _) in moves.items():
            number, position, k = key
            array = launch.operation.accesses[position].array
            target = float_parts(launch.view(start, number, array))[k]
            target[...] = (there + t * along[key]).astype(target.dtype)
            left[key] = target.astype(np.float64) - there
        launch.make(start)
        return left

    def change(t: float) -> tuple[float, float]:
        left = make(t * natural, halves)
        return math.fsum(float(np.sum(d * halves[k])) for k, d in left.items()) / (
            length * natural
        ), launch.weighted_change()

    def shaken(t: float) -> float:
        make(t, anywhere)
        return launch.weighted_change()

    eps = launch.eps([*launch.arriving, *(there for there, _ in moves.values())])
    ulp = eps * launch.size()
    # Terms that move alike are rounded alike: along the direction there may be more noise than anywhere.
    rough = max(roughness(shaken, ulp), roughness(lambda t: change(t)[1], ulp))
    alone = isolate.differenced(change, launch.size(), eps, rough)
    found = isolate.tangent_noise(natural * _recorded(launch, perturbed.left), alone, natural * CENTRAL * rough)
    return None if found is None else found / natural / perturbed.step


def _moves(launch: Launch, read: list[ByRoot]) -> dict[Key, tuple[np.ndarray, np.ndarray]]:
    """(root, position of the argument, part) -> its values, and half of what they differ by between the two runs."""
    found = {}
    for position, access in enumerate(launch.operation.accesses):
        if access.number not in launch.before:
            continue
        three = (launch.view(contents, access.number, access.array) for contents in (launch.before, *read))
        for k, (there, plus, minus) in enumerate(zip(*map(float_parts, three), strict=True)):
            half = 0.5 * (plus.astype(np.float64) - minus)
            if half.any():
                found[access.number, position, k] = (there.astype(np.float64), half)
    return found


def _recorded(launch: Launch, left: list[ByRoot]) -> float:
    """Half of <Ā, F(x+) - F(x-)>, as the runs have it."""
    total = 0.0
    for (number, holder), weight in zip(launch.holders, launch.arriving, strict=True):
        used = weight != 0.0
        plus, minus = (launch.view(contents, number, holder)[used].astype(np.float64) for contents in left)
        total += 0.5 * float(np.sum(weight[used].astype(np.float64) * (plus - minus)))
    return total

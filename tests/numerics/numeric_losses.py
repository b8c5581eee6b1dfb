"""Losses with known gradients, in float32 or float64, as gradient checkers meet them.

A `Problem` is a point, an objective evaluated in its dtype, and the exact gradient there (float64). Families:
smooth, kinked (contacts, hinges, clamps, nodes; the derivative exists unless `at_kink`), noisy (round-off-like
jumps of 1e-6 to 1e-3, as an iterative solver leaves them).
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from typing import Callable, Dict, List, Tuple

import numpy as np

Array = np.ndarray
Loss = Callable[[Array], float]


@dataclass(frozen=True)
class Problem:
    """x: (n,) of dtype; loss: (n,) -> float rounded to dtype; gradient: (n,) float64."""

    name: str
    family: str
    x: Array
    loss: Loss
    gradient: Array
    at_kink: bool = False

    @property
    def scale(self) -> float:
        """RMS of the point, the natural size of a step along a unit-RMS direction."""
        return float(np.sqrt(np.mean(self.x.astype(np.float64) ** 2)))

    @property
    def eps(self) -> float:
        return float(np.finfo(self.x.dtype).eps)

    def along(self, direction: Array) -> Callable[[float], Tuple[float, float]]:
        """t -> (effective step, value): the perturbed point is rounded to the dtype, as Warp's would be."""

        def evaluate(t: float) -> Tuple[float, float]:
            start = self.x.astype(np.float64)
            moved = (start + t * direction).astype(self.x.dtype)
            effective = float((moved.astype(np.float64) - start) @ direction / (direction @ direction))
            with np.errstate(all="ignore"):
                return effective, float(self.loss(moved))

        return evaluate


def directions(problem: Problem, rng: np.random.Generator, count: int) -> List[Array]:
    """(n,) float64 of unit RMS each; random, never the gradient itself."""
    found = []
    for _ in range(count):
        direction = rng.standard_normal(problem.x.size)
        found.append(direction / max(float(np.sqrt(np.mean(direction**2))), 1e-12))
    return found


def _point(rng: np.random.Generator, n: int, scale: float, dtype: type) -> Array:
    return (scale * rng.standard_normal(n)).astype(dtype)


def _serial_sum(terms: Array) -> float:
    """Left to right in the dtype, as one thread or atomics would."""
    return float(np.add.accumulate(terms)[-1])


def quadratic(rng: np.random.Generator, n: int, s: float, dtype: type) -> Problem:
    x = _point(rng, n, s, dtype)
    weight, goal = rng.uniform(0.2, 2.0, n).astype(dtype), (s * rng.standard_normal(n)).astype(dtype)
    unit = dtype(1.0 / s)

    def loss(p: Array) -> float:
        return float(np.sum(weight * ((p - goal) * unit) ** 2) / dtype(n))

    exact = 2.0 * weight.astype(float) * (x.astype(float) - goal) * float(unit) ** 2 / n
    return Problem("quadratic", "smooth", x, loss, exact)


def oscillating(rng: np.random.Generator, n: int, s: float, dtype: type) -> Problem:
    x = _point(rng, n, s, dtype)
    frequency, phase = (rng.uniform(1.0, 8.0, n) / s).astype(dtype), rng.uniform(0.0, 6.0, n).astype(dtype)

    def loss(p: Array) -> float:
        return float(dtype(1.0) + np.mean(np.sin(frequency * p + phase)))

    w = frequency.astype(float)
    return Problem("oscillating", "smooth", x, loss, w * np.cos(w * x.astype(float) + phase) / n)


def stiff(rng: np.random.Generator, n: int, s: float, dtype: type) -> Problem:
    """Softplus walls, some 30 times steeper than the point is large."""
    x = _point(rng, n, s, dtype)
    steep, wall = dtype(30.0 / s), (s * rng.standard_normal(n)).astype(dtype)

    def loss(p: Array) -> float:
        return float(np.mean(np.logaddexp(dtype(0.0), steep * (p - wall))))

    z = float(steep) * (x.astype(float) - wall.astype(float))
    return Problem("stiff", "smooth", x, loss, float(steep) / (1.0 + np.exp(-z)) / n)


def long_sum(rng: np.random.Generator, n: int, s: float, dtype: type) -> Problem:
    """10,000 terms added one after the other."""
    x = _point(rng, n, s, dtype)
    terms = 10_000
    owner, target = rng.integers(0, n, terms), (s * rng.standard_normal(terms)).astype(dtype)
    unit = dtype(1.0 / s)

    def loss(p: Array) -> float:
        return _serial_sum(np.tanh((p[owner] - target) * unit) ** 2 / dtype(terms))

    z = np.tanh((x.astype(float)[owner] - target) * float(unit))
    exact = np.zeros(n)
    np.add.at(exact, owner, 2.0 * z * (1.0 - z * z) * float(unit) / terms)
    return Problem("long_sum", "smooth", x, loss, exact)


def rollout(rng: np.random.Generator, n: int, s: float, dtype: type) -> Problem:
    """Pendulums over 40 steps; the tangent is carried along in float64."""
    x = _point(rng, n, s, dtype)
    dt, unit = 0.1, 1.0 / s

    def run(p: Array, kind: type) -> Tuple[float, Array]:
        angle, speed = p.astype(kind) * kind(unit), np.zeros(n, kind)
        d_angle, d_speed = np.full(n, unit), np.zeros(n)
        for _ in range(40):
            d_speed = d_speed - dt * np.cos(angle.astype(float)) * d_angle
            speed = speed - kind(dt) * np.sin(angle)
            angle, d_angle = angle + kind(dt) * speed, d_angle + dt * d_speed
        return float(np.mean(angle * angle)), 2.0 * angle.astype(float) * d_angle / n

    return Problem("rollout", "smooth", x, lambda p: run(p, dtype)[0], run(x, np.float64)[1])


def offset(rng: np.random.Generator, n: int, s: float, dtype: type) -> Problem:
    """A regulariser of some size on top of what depends on the parameter."""
    inner = oscillating(rng, n, s, dtype)
    shift = dtype(10.0 ** rng.uniform(0.0, 2.0))
    return Problem("offset", "smooth", inner.x, lambda p: float(shift + dtype(inner.loss(p))), inner.gradient)


def hinge(rng: np.random.Generator, n: int, s: float, dtype: type) -> Problem:
    """Penalty contact: max(0, d)^2, half of the points in contact, the nearest wall anywhere."""
    x = _point(rng, n, s, dtype)
    wall, unit = (s * rng.standard_normal(n)).astype(dtype), dtype(1.0 / s)

    def loss(p: Array) -> float:
        return float(np.mean(np.maximum(dtype(0.0), (p - wall) * unit) ** 2))

    depth = np.maximum(0.0, (x.astype(float) - wall) * float(unit))
    return Problem("hinge", "kinked", x, loss, 2.0 * depth * float(unit) / n)


def absolute(rng: np.random.Generator, n: int, s: float, dtype: type) -> Problem:
    """L1 distance: as many kinks as elements, at random distances."""
    x = _point(rng, n, s, dtype)
    goal, unit = (s * rng.standard_normal(n)).astype(dtype), dtype(1.0 / s)

    def loss(p: Array) -> float:
        return float(np.mean(np.abs((p - goal) * unit)))

    return Problem("absolute", "kinked", x, loss, np.sign(x.astype(float) - goal) * float(unit) / n)


def bilinear(rng: np.random.Generator, n: int, s: float, dtype: type) -> Problem:
    """Linear interpolation of a rough grid: slopes change at every node, as image and field look-ups do."""
    x = _point(rng, n, s, dtype)
    table, cells = rng.standard_normal(257).astype(dtype), dtype(8.0 / s)

    def loss(p: Array) -> float:
        at = np.clip(p * cells + dtype(128.0), dtype(0.0), dtype(255.99))
        cell = np.floor(at).astype(int)
        part = at - cell.astype(dtype)
        return float(np.mean((table[cell] * (dtype(1.0) - part) + table[cell + 1] * part) ** 2))

    at = x.astype(float) * float(cells) + 128.0
    inside = (at > 0.0) & (at < 255.99)
    cell = np.floor(np.clip(at, 0.0, 255.99)).astype(int)
    slope, part = table[cell + 1].astype(float) - table[cell], np.clip(at, 0.0, 255.99) - cell
    exact = 2.0 * (table[cell] + slope * part) * slope * float(cells) * inside / n
    return Problem("bilinear", "kinked", x, loss, exact)


def bouncing(rng: np.random.Generator, n: int, s: float, dtype: type) -> Problem:
    """Balls that fall on a penalty floor once or twice in 70 steps; contact starts and ends at whole steps."""
    x = (np.abs(_point(rng, n, s, dtype)) + dtype(0.05 * s)).astype(dtype)
    dt, unit, stiffness = 0.025, 1.0 / s, 200.0

    def run(p: Array, kind: type) -> Tuple[float, Array]:
        height, speed = p.astype(kind) * kind(unit), np.zeros(n, kind)
        d_height, d_speed = np.full(n, unit), np.zeros(n)
        for _ in range(70):
            touching = height < 0
            d_speed = d_speed - dt * stiffness * d_height * touching
            speed = speed + kind(dt) * (kind(-2.0) - kind(stiffness) * height * touching.astype(kind))
            height, d_height = height + kind(dt) * speed, d_height + dt * d_speed
        return float(np.mean((height - kind(0.3)) ** 2)), 2.0 * (height.astype(float) - 0.3) * d_height / n

    return Problem("bouncing", "kinked", x, lambda p: run(p, dtype)[0], run(x, np.float64)[1])


def at_node(rng: np.random.Generator, n: int, s: float, dtype: type) -> Problem:
    """|x| with some elements exactly on the kink, where AD takes one side (relu's zero, or +1)."""
    x = _point(rng, n, s, dtype)
    on = rng.random(n) < rng.choice([0.02, 0.3, 1.0])
    on[0] = True
    x[on] = 0.0
    unit = dtype(1.0 / s)

    def loss(p: Array) -> float:
        return float(np.mean(np.abs(p * unit) + dtype(0.3) * p * unit))

    side = rng.choice([0.0, 1.0])
    exact = (np.where(on, side, np.sign(x.astype(float))) + 0.3) * float(unit) / n
    return Problem("at_node", "kinked", x, loss, exact, at_kink=True)


def with_noise(problem: Problem, relative: float) -> Problem:
    """The same objective times 1 + relative * u, u in [-1, 1) fixed by the parameter's bits."""
    dtype = problem.x.dtype.type

    def loss(p: Array) -> float:
        u = zlib.crc32(np.ascontiguousarray(p).tobytes()) / 2.0**31 - 1.0
        return float(dtype(problem.loss(p)) * dtype(1.0 + relative * u))

    return Problem(f"noisy_{problem.name}", "noisy", problem.x, loss, problem.gradient)


def noisy(rng: np.random.Generator, n: int, s: float, dtype: type) -> Problem:
    maker = [quadratic, oscillating, rollout][int(rng.integers(3))]
    return with_noise(maker(rng, n, s, dtype), 10.0 ** rng.uniform(-6.0, -3.0))


MAKERS: Dict[str, List[Callable[..., Problem]]] = {
    "smooth": [quadratic, oscillating, stiff, long_sum, rollout, offset],
    "kinked": [hinge, absolute, bilinear, bouncing, at_node],
    "noisy": [noisy],
}
SIZES = (1, 3, 30, 300, 4096)


def draw(family: str, trial: int, dtype: type, decades: Tuple[float, float] = (-2.0, 2.0)) -> Problem:
    """Problem number `trial` of a family: sizes and losses in turn, scale 10^decades, seed by the number."""
    rng = np.random.default_rng([trial, len(family), np.dtype(dtype).itemsize])
    makers = MAKERS[family]
    size = SIZES[(trial // len(makers)) % len(SIZES)]
    scale = 10.0 ** rng.uniform(*decades)
    return makers[trial % len(makers)](rng, size, scale, dtype)


def rounded_gradient(problem: Problem, rng: np.random.Generator) -> Array:
    """The exact gradient with the round-off a right backward pass has: 20 eps an element, (n,) float64."""
    exact = problem.gradient
    typical = math.sqrt(float(np.mean(exact**2)))
    wobble = problem.eps * (20.0 * np.abs(exact) + typical) * rng.uniform(-1.0, 1.0, exact.size)
    return exact + wobble

"""Quality of gradient checkers, measured: `python tests/numerics/quality.py [trials]` prints one table.

Each rule is asked about right gradients (false alarm: called wrong; unsure: no answer) and about the same
gradients with a planted fault (found: called wrong). Faults are planted where a derivative exists. The
rules beside ours are their published formulas on one random unit-RMS direction.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, DefaultDict, Dict, Generator, List, Optional, Sequence, Tuple

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
for folder in (str(ROOT / "server"), str(Path(__file__).resolve().parent)):
    if folder not in sys.path:
        sys.path.insert(0, folder)

import numeric_losses as losses  # noqa: E402

from warp_debug_gradients.probe.allowance import BRIEF  # noqa: E402
from warp_debug_gradients.probe.confirm import confirm  # noqa: E402
from warp_debug_gradients.probe.differences import Estimate, directional_derivative  # noqa: E402
from warp_debug_gradients.probe.estimate import BRIEFLY_ENOUGH  # noqa: E402
from warp_debug_gradients.probe.verdict import combine, decisive, judge  # noqa: E402

FAULTS: Dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "1 %": lambda g: 1.01 * g,
    "10 %": lambda g: 1.10 * g,
    "2x": lambda g: 2.0 * g,
    "sign": lambda g: -g,
    "zero": lambda g: 0.0 * g,
}
DIRECTIONS = 3


def drive(generator: Generator[List[float], Any, Any], evaluate: Callable[[float], object]) -> Any:
    """Answers a generator's steps with `evaluate`, in order."""
    replies: Optional[List[object]] = None
    while True:
        try:
            replies = [evaluate(t) for t in generator.send(replies)]  # type: ignore[arg-type]
        except StopIteration as stop:
            return stop.value


@dataclass
class Measured:
    """A problem, its directions, and what was evaluated along them; shared by every gradient asked about."""

    problem: losses.Problem
    base: float
    scale: float
    lines: List[np.ndarray]
    estimates: List[Estimate]


def measure(problem: losses.Problem, rng: np.random.Generator, floor: float = 1e-3) -> Measured:
    lines = losses.directions(problem, rng, DIRECTIONS)
    base, eps = float(problem.loss(problem.x)), problem.eps
    scale = max(problem.scale, floor)
    estimates = [drive(directional_derivative(base, [base], scale, eps, eps), problem.along(line)) for line in lines]
    return Measured(problem, base, scale, lines, estimates)


def ladder(measured: Measured, gradient: np.ndarray, count: int) -> str:
    """The whole rule: every direction judged, all combined, a disagreement looked at again at finer steps."""
    size, eps = float(np.linalg.norm(gradient)), measured.problem.eps
    pairs = list(zip(measured.lines[:count], measured.estimates))
    judged = [judge(float(gradient @ v), e, eps, size) for v, e in pairs]
    overall = combine(judged)
    if overall.verdict != "disagree":
        return overall.verdict
    line, estimate = pairs[decisive(overall, judged)]
    steps = confirm(overall, estimate, measured.base, [], eps, eps, measured.scale)
    return drive(steps, measured.problem.along(line))[0].verdict


def sparing(measured: Measured, gradient: np.ndarray) -> str:
    """How a diagnosis measures a slow program: few steps along one direction, and one look at a finer one."""
    problem, line, eps = measured.problem, measured.lines[0], measured.problem.eps
    brief = directional_derivative(
        measured.base, [measured.base], measured.scale, eps, eps, BRIEF, enough=BRIEFLY_ENOUGH
    )
    estimate = drive(brief, problem.along(line))
    judged = judge(float(gradient @ line), estimate, eps, float(np.linalg.norm(gradient)))
    if judged.verdict != "disagree":
        return judged.verdict
    steps = confirm(judged, estimate, measured.base, [], eps, eps, measured.scale, brief=True)
    return drive(steps, problem.along(line))[0].verdict


def central(measured: Measured, gradient: np.ndarray, step: float, atol: float, rtol: float) -> str:
    along, slope = measured.problem.along(measured.lines[0]), float(gradient @ measured.lines[0])
    found = (along(step)[1] - along(-step)[1]) / (2.0 * step)
    return "agree" if abs(found - slope) <= atol + rtol * abs(found) else "disagree"


def taylor(measured: Measured, gradient: np.ndarray) -> str:
    """Remainders |f(h) - f(0) - h <g, v>| at h = 0.01 / 2^k must shrink with order 1.9 or more."""
    along, slope = measured.problem.along(measured.lines[0]), float(gradient @ measured.lines[0])
    steps = [0.01 / 2**k for k in range(4)]
    base = along(0.0)[1]
    rest = [max(abs(along(h)[1] - base - h * slope), 1e-300) for h in steps]
    orders = [np.log2(a / b) for a, b in zip(rest, rest[1:])]
    return "agree" if min(orders) > 1.9 else "disagree"


RULES: Dict[str, Tuple[Callable[[Measured, np.ndarray], str], float]] = {
    "guarded ladder, 3 directions": (lambda m, g: ladder(m, g, 3), 0.0),
    "guarded ladder, 1 direction": (lambda m, g: ladder(m, g, 1), 0.0),
    "sparing": (sparing, 6.0),
    "Warp gradcheck defaults": (lambda m, g: central(m, g, 1e-4, 1e-3, 1e-2), 2.0),
    "central at 1e-3, rtol 1e-2": (lambda m, g: central(m, g, 1e-3, 0.0, 1e-2), 2.0),
    "Taylor test": (taylor, 5.0),
}


@dataclass
class Tally:
    """Counts of verdicts on right gradients, a family, and on faults: [hits, asked]."""

    right: DefaultDict[str, DefaultDict[str, int]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(int))
    )
    found: DefaultDict[Tuple[str, str], List[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))
    evaluations: List[float] = field(default_factory=list)
    alarms: List[str] = field(default_factory=list)

    def rate(self, verdict: str, families: Sequence[str]) -> float:
        asked = sum(sum(self.right[family].values()) for family in families)
        return sum(self.right[family][verdict] for family in families) / max(1, asked)

    def detection(self, fault: str, families: Sequence[str] = ("smooth", "kinked")) -> float:
        counts = [self.found[(family, fault)] for family in families]
        return sum(hits for hits, _ in counts) / max(1, sum(asked for _, asked in counts))


def run(
    dtype: type, trials: int, rules: Sequence[str] = tuple(RULES), families: Sequence[str] = tuple(losses.MAKERS)
) -> Dict[str, Tally]:
    """Asks every rule about `trials` problems of each family; the same problems for every rule."""
    tallies = {rule: Tally() for rule in rules}
    for family in families:
        for trial in range(trials):
            problem = losses.draw(family, trial, dtype)
            rng = np.random.default_rng([trial, 7])
            measured = measure(problem, rng)
            right = losses.rounded_gradient(problem, rng)
            for rule in rules:
                ask, fixed = RULES[rule]
                tally = tallies[rule]
                verdict = ask(measured, right)
                tally.right[family][verdict] += 1
                if verdict == "disagree":
                    tally.alarms.append(f"{problem.name} n={problem.x.size} #{trial}")
                used = [float(e.evaluations) for e in measured.estimates]
                tally.evaluations.append(fixed or float(np.mean(used)))
                if problem.at_kink or not problem.gradient.any():
                    continue
                for fault, plant in FAULTS.items():
                    answer = ask(measured, plant(right))
                    tally.found[(family, fault)][0] += answer == "disagree"
                    tally.found[(family, fault)][1] += 1
    return tallies


def table(dtype: type, trials: int) -> str:
    head = ["rule", "evaluations", "false: smooth", "kinked", "noisy", "unsure: smooth", "kinked", "noisy"]
    head += [f"finds {fault}" for fault in FAULTS] + ["10 % in noise"]
    rows = [head, ["---"] * len(head)]
    for rule, tally in run(dtype, trials).items():
        cells = [rule, f"{np.mean(tally.evaluations):.1f}"]
        cells += [f"{100 * tally.rate('disagree', [family]):.1f} %" for family in losses.MAKERS]
        cells += [f"{100 * tally.rate('inconclusive', [family]):.0f} %" for family in losses.MAKERS]
        cells += [f"{100 * tally.detection(fault):.0f} %" for fault in FAULTS]
        cells.append(f"{100 * tally.detection('10 %', ['noisy']):.0f} %")
        rows.append(cells)
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 120
    started = time.perf_counter()
    for dtype in (np.float32, np.float64):
        print(f"\n{np.dtype(dtype).name}, {trials} problems a family\n\n{table(dtype, trials)}")
    print(f"\n{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()

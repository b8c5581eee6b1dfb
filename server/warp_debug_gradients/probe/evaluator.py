"""The objective as a function of one parameter, in requests and replies, and derivatives of it along directions."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Callable, Generator

import numpy as np

from .differences import Estimate
from .verdict import Judgement, judge

Request = dict[str, Any]
Reply = dict[str, Any]
Steps = Generator[list[Request], list[Reply], Any]

DIRECTIONS = 3  # one wrong component among thousands is missed by one direction in three, by three hardly ever
ELEMENTS = 16  # single elements that are differenced to learn how a gradient is wrong
WINDOWS = 4  # backward calls of one iteration whose own window is checked
HORIZONS = 3  # parts of a tape through which a wrong gradient is measured again
EVALUATIONS = 15  # a direction
SEED = 20261202  # of the random directions: the same in every run, so that a check can be repeated
EPS = {"float16": 9.77e-4, "float32": 1.19209e-7, "float64": 2.220446e-16}


def precisions(plan: dict[str, Any], dtype: Any) -> tuple[float, float]:
    """Machine eps of the objective and of a parameter of this dtype (a scalar type's name, or float32's for vectors)."""
    return EPS.get(plan["objective_dtype"], EPS["float32"]), EPS.get(str(dtype), EPS["float32"])


def coarsest(plan: dict[str, Any], dtype: Any) -> float:
    """The larger of the two eps, by which a gradient is judged."""
    return max(EPS.get(str(dtype), 0.0), precisions(plan, dtype)[0])


@dataclass(frozen=True)
class Options:
    """remaining: seconds left for this check (a callable), used to leave out what would not fit, and to say so.

    line: measure the objective along a right gradient as well, and what the update between two checked iterations did.
    iteration_seconds: what one iteration took in the watched run, as a first guess of an evaluation.
    sparing_from: seconds of an evaluation from which a check is brief, whatever the time allows.
    """

    directions: int = DIRECTIONS
    elements: int = ELEMENTS
    windows: int = WINDOWS
    line: bool = False
    iteration_seconds: float = 0.0
    sparing_from: float = math.inf
    horizons: int = HORIZONS
    remaining: Callable[[], float] = lambda: math.inf
    progress: Callable[[str, int, int], None] = lambda message, done, total: None


class Evaluator:
    """The objective of one iteration as a function of one parameter, in requests and replies."""

    def __init__(
        self,
        plan: dict[str, Any],
        parameter: dict[str, Any],
        calls: list[int],
        x0: np.ndarray,
        reference: Reply,
        event: int,
    ):
        self.plan, self.parameter, self.calls, self.x0, self.reference, self.event = (
            plan,
            parameter,
            calls,
            x0,
            reference,
            event,
        )
        self.until_call = max(calls)
        self.wiped_at: int | None = None

    def effective(self, delta: np.ndarray) -> np.ndarray:
        """The perturbation that survives rounding to the parameter's dtype (float64)."""
        rounded = (self.x0.astype(np.float64) + delta).astype(self.x0.dtype)
        return rounded.astype(np.float64) - self.x0.astype(np.float64)

    def request(self, delta: np.ndarray, watch: bool = False) -> Request:
        item = {k: self.parameter[k] for k in ("key", "serial", "check_event")}
        item.update(event=self.event, delta=delta)
        return make_request(self.plan, [item], self.calls, self.until_call, watch=watch)

    def value(self, reply: Reply) -> float:
        """The objective of a reply; nan where the evaluation failed."""
        if reply.get("survived") is False:
            self.wiped_at = reply.get("wiped_at")
        return objective(reply, self.plan, self.calls, self.reference)


def blank_reply(error: str | None = None) -> Reply:
    """A reply with nothing in it yet; with `error`, that of an evaluation that gave no objective."""
    empty = ("losses", "before", "outputs", "seeds", "values", "consumed", "contributions", "places", "call_events")
    return {
        "ok": error is None,
        "error": error,
        "reason": None,
        "objective": None,
        "survived": True,
        "wiped_at": None,
        "suffix_ops": None,
        "seconds": None,
        "forward_seconds": None,
        **{name: {} for name in empty},
    }


def make_request(
    plan: dict[str, Any],
    perturb: list[dict[str, Any]],
    calls: list[int],
    until_call: int,
    watch: bool = False,
    kind: str = "evaluate",
) -> Request:
    """One evaluation of the plan's iteration (see `evaluate` for the fields)."""
    return {
        "kind": kind,
        "perturb": perturb,
        "until_call": until_call,
        "until_event": plan["until_event"],
        "start_event": plan["pause"],
        "calls": calls,
        "outputs": {int(k): v for k, v in plan["outputs"].items()},
        "early_losses": plan["early_losses"],
        "loss_before": plan["loss_before"],
        "watch": watch,
        "suffix_event": None,
        "objective": plan.get("objective"),
        "parameters": plan["parameters"] if kind == "reference" else [],
        "wanted": plan["parameters"],
    }


def seconds_of(seconds: dict[str, list[float]]) -> dict[str, float]:
    """What one evaluation took, and what the watched reference did, which runs the backward passes as well."""
    names = {"evaluate": "seconds_per_evaluation", "reference": "seconds_of_reference"}
    return {name: sum(seconds[kind]) / max(1, len(seconds[kind])) for kind, name in names.items()}


def objective(reply: Reply, plan: dict[str, Any], calls: list[int], reference: Reply) -> float:
    """Sum of the losses handed to backward, plus ⟨seed, output⟩ where there was no loss; or the user's expression."""
    if not reply["ok"]:
        return math.nan
    if plan.get("objective"):
        return float(reply["objective"]) if reply["objective"] is not None else math.nan
    total = 0.0
    for call in calls:
        if call in reply["losses"]:
            total += reply["losses"][call] - reply["before"].get(call, 0.0)
            if call not in reply["outputs"]:
                continue
        if call in reply["outputs"] and reply["outputs"][call].size == reference["seeds"][call].size:
            total += float(reply["outputs"][call] @ reference["seeds"][call])
        else:
            return math.nan
    return total


def typical_size(x0: np.ndarray) -> float:
    """RMS of the parameter's finite scalars; 1 where all are zero (nothing says how large a change is small)."""
    finite = x0[np.isfinite(x0)].astype(np.float64)
    rms = float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0
    return rms if rms > 0.0 else 1.0


def direction_key(parameter: dict[str, Any]) -> str:
    """What seeds a parameter's directions: its own key, or that of an earlier check that this one repeats."""
    return parameter.get("direction_key") or parameter["key"]


def random_directions(x0: np.ndarray, key: str, count: int) -> list[np.ndarray]:
    """Random directions with the parameter's RMS, float64, shape (scalars,). One scalar has one direction."""
    rng = np.random.default_rng([SEED, zlib.crc32(key.rsplit("/", 1)[-1].encode())])
    size = typical_size(x0)
    if x0.size == 1:
        return [np.array([size])]
    made = []
    for _ in range(min(count, max(2, x0.size))):
        v = rng.standard_normal(x0.size)
        made.append(v * (size / np.sqrt(np.mean(v**2))))
    return made


def run_side_by_side(
    generators: Sequence[Generator[Any, Any, Any]], evaluator: Evaluator, vectors: list[np.ndarray]
) -> Steps:
    """Drive several step generators side by side; returns what they return, in order."""
    returned: list[Any] = [None] * len(generators)
    wanted: dict[int, list[float]] = {}

    def advance(i: int, replies: Any) -> None:
        try:
            wanted[i] = generators[i].send(replies)
        except StopIteration as stop:
            wanted.pop(i, None)
            returned[i] = stop.value

    for i in range(len(generators)):
        advance(i, None)
    while wanted:
        asked = [(i, t, evaluator.effective(t * vectors[i])) for i, steps in wanted.items() for t in steps]
        replies = yield [evaluator.request(delta) for _, _, delta in asked]
        values: dict[int, list[tuple[float, float]]] = {i: [] for i in wanted}
        for (i, _, delta), reply in zip(asked, replies, strict=True):
            v = vectors[i]
            values[i].append((float(delta @ v) / float(v @ v), evaluator.value(reply)))
        for i in list(values):
            advance(i, values[i])
    return returned


def _magnitude(gradient: np.ndarray, v: np.ndarray) -> float:
    """The usual size of <g, v> for a random v of this RMS: |g| RMS(v)."""
    finite = gradient[np.isfinite(gradient)]
    return float(np.linalg.norm(finite)) * float(np.sqrt(np.mean(v**2)))


def judge_direction(
    gradient: np.ndarray, v: np.ndarray, estimate: Estimate, x0: np.ndarray, plan: dict[str, Any]
) -> Judgement:
    with np.errstate(invalid="ignore"):
        along = float(gradient @ v)
    return judge(along, estimate, coarsest(plan, x0.dtype), _magnitude(gradient, v))

"""Is the consumed gradient the derivative of the objective? Which evaluations that takes, and what they say.

`check_iteration` is a generator: it yields lists of requests (see `evaluate`), is sent the replies, and
returns one result (the contract's `checks` entry) for each parameter. It knows no engine and no Warp: the
fork engine drives it inside the program, the rerun engine from outside.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Callable, Generator

import numpy as np

from .differences import Estimate, directional_derivative, refine
from .signature import signature
from .verdict import Judgement, combine, judge, round_off

Request = dict[str, Any]
Reply = dict[str, Any]
Steps = Generator[list[Request], list[Reply], Any]

DIRECTIONS = 3  # one wrong component among thousands is missed by one direction in three, by three hardly ever
ELEMENTS = 16  # single elements that are differenced to learn how a gradient is wrong
WINDOWS = 4  # backward calls of one iteration whose own window is checked
EVALUATIONS = 15  # a direction
SEED = 20261202  # of the random directions: the same in every run, so that a check can be repeated
MOVES = 3  # how often the moment of the perturbation is moved behind a write that no hook saw
CONFIRM_NOISE = 24.0  # a disagreement is looked at again where it is this many times the objective's noise
CONFIRM_ULPS = 64.0  # and where the parameter still moves by this many of its own ulps
CONFIRM_FRACTION = 0.35  # it is gone where every slope lies within this fraction of the gap around AD
EPS = {"float16": 9.77e-4, "float32": 1.19209e-7, "float64": 2.220446e-16}


@dataclass(frozen=True)
class Options:
    """remaining: seconds left for this check (a callable), used to leave out what would not fit, and to say so."""

    directions: int = DIRECTIONS
    elements: int = ELEMENTS
    windows: int = WINDOWS
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
        "watch": watch,
        "objective": plan.get("objective"),
        "parameters": plan["parameters"] if kind == "reference" else [],
        "wanted": plan["parameters"],
    }


def objective(reply: Reply, plan: dict[str, Any], calls: list[int], reference: Reply) -> float:
    """Sum of the losses handed to backward, plus ⟨seed, output⟩ where there was no loss; or the user's expression."""
    if not reply["ok"]:
        return math.nan
    if plan.get("objective"):
        return float(reply["objective"]) if reply["objective"] is not None else math.nan
    total = 0.0
    for call in calls:
        if call in reply["losses"]:
            total += reply["losses"][call]
            if call not in reply["outputs"]:
                continue
        if call in reply["outputs"] and reply["outputs"][call].size == reference["seeds"][call].size:
            total += float(reply["outputs"][call] @ reference["seeds"][call])
        else:
            return math.nan
    return total


def check_iteration(plan: dict[str, Any], options: Options) -> Steps:
    """Check every parameter of one iteration; returns a list of results."""
    calls: list[int] = sorted({*plan["backward_calls"], *(plan["objective_calls"] or [])})
    last = max(plan["objective_calls"] or calls)
    first = [make_request(plan, [], calls, max(calls), kind="reference")]
    first += [make_request(plan, [], plan["objective_calls"] or calls, last) for _ in range(2)]
    started = time.perf_counter()
    reference, *repeats = yield first
    per_evaluation = (time.perf_counter() - started) / len(first)
    seen = {str(k): v for k, v in reference.get("call_events", {}).items() if k in plan["backward_calls"]}
    if reference["ok"] and seen != plan["call_events"]:
        reference["ok"], reference["error"] = (
            False,
            "the program does not repeat its own steps from run to run: the same backward call came at another event",
        )
    results = []
    for parameter in plan["parameters"]:
        results.append((yield from _check_parameter(plan, parameter, reference, repeats, options, per_evaluation)))
    return results


def _check_parameter(
    plan: dict[str, Any],
    parameter: dict[str, Any],
    reference: Reply,
    repeats: list[Reply],
    options: Options,
    cost: float,
) -> Steps:
    result = _blank(plan, parameter, reference)
    x0, used = reference["values"].get(parameter["key"]), reference["consumed"].get(parameter["key"])
    if not reference["ok"] or x0 is None or used is None or used["gradient"] is None:
        return _give_up(
            result,
            "not_measured",
            reference["error"]
            or f"{parameter['name']} or its gradient was not seen again when the program was run once more: it does not repeat its own steps",
        )
    if not set(used["calls"]) <= set(plan["backward_calls"]):
        return _give_up(result, "not_measured", "the update could not be told from the next iteration's")
    calls = plan["objective_calls"] or used["calls"] or list(plan["backward_calls"])
    gradient = np.asarray(used["gradient"], dtype=np.float64)
    if parameter.get("zeroed_under_view"):
        used, gradient = {**used, "when": "view_zeroed", "norm": 0.0}, np.zeros_like(gradient)
    evaluator = Evaluator(plan, parameter, calls, x0, reference, parameter["event"])
    base = evaluator.value(reference)
    again = [evaluator.value(r) for r in repeats]
    result["objective"]["value"] = base
    result["repeats"] = {
        "values": [base, *again],
        "reproducible": all(v == base or (v != v and base != base) for v in again),
    }
    result["consumed"] = {k: used[k] for k in ("when", "calls", "discarded", "edited", "norm")} | {
        "read": _read_place(used)
    }
    if any(not r["ok"] for r in repeats):
        return _give_up(result, "not_measured", next(r["error"] for r in repeats if not r["ok"]))

    directions = _directions(x0, parameter["key"], options.directions)
    if cost * EVALUATIONS * len(directions) > options.remaining() and len(directions) > 1:
        directions = directions[:1]
        result["not_covered"].append("two of three random directions, for lack of time")
    estimates = yield from _settle(evaluator, directions, base, again, plan, result)
    judged = [_judged(gradient, v, e, x0, plan) for v, e in zip(directions, estimates, strict=True)]
    result["evaluations"] = 3 + sum(e.evaluations for e in estimates)
    result["gradient"]["directions"] = [
        _direction_row(i, j, e) for i, (j, e) in enumerate(zip(judged, estimates, strict=True))
    ]
    overall = combine(judged)

    if overall.verdict == "disagree" or overall.reason in ("imprecise", "unsettled"):
        decisive = next(
            k
            for k, j in enumerate(judged)
            if j.finite_difference == overall.finite_difference or math.isnan(overall.finite_difference)
        )
        overall = yield from _confirm(overall, evaluator, directions[decisive], estimates[decisive], base, result)
    elements = yield from _elements(
        evaluator, gradient, x0, base, again, directions, estimates, overall, options, cost, result
    )
    wrong = [row for row in elements if row["verdict"] == "disagree"]
    if wrong and overall.verdict == "agree":  # a fault in few elements hides in random directions
        worst = max(wrong, key=lambda row: row["judgement"].bands_off)
        v = np.zeros(x0.size)
        v[worst["index"]] = typical_size(x0)
        overall = yield from _confirm(worst["judgement"], evaluator, v, worst["estimate"], base, result)
    if overall.verdict == "disagree" and parameter.get("spans_updates"):
        overall = replace(
            overall,
            verdict="inconclusive",
            reason="spans_updates",
            message=f"{overall.message}. But other parameters were updated between the backward calls whose gradients "
            "are summed here: the sum is the gradient of no single objective",
        )
    for row in elements:
        row.pop("judgement")
        row.pop("estimate")
        if overall.verdict != "disagree" and row["verdict"] == "disagree":
            row["verdict"] = "inconclusive"
    result["gradient"]["elements"] = elements
    _conclude(result, overall, judged, gradient, directions, estimates, elements, plan)
    if overall.verdict == "disagree" or len(plan["backward_calls"]) > 1:
        result["windows"] = yield from _windows(evaluator, directions[0], base, plan, reference, options, cost, result)
    return result


def _blank(plan: dict[str, Any], parameter: dict[str, Any], reference: Reply) -> dict[str, Any]:
    places = reference.get("places", {})
    return {
        "iteration": plan["iteration"],
        "parameter": {k: parameter.get(k) for k in ("name", "dtype", "shape", "scalars", "allocated", "key")},
        "objective": {
            "name": plan.get("objective") or plan["objective_name"],
            "kind": "expression" if plan.get("objective") else plan["objective_kind"],
            "value": None,
        },
        "horizon": {
            "windows": len(plan["backward_calls"]),
            "ops": plan["ops"],
            "full": True,
            "from": places.get("from"),
            "to": places.get("to"),
        },
        "verdict": "inconclusive",
        "reason": None,
        "message": "",
        "gradient": {
            "autodiff": None,
            "finite_difference": None,
            "error": None,
            "relative_error": None,
            "directions": [],
            "elements": [],
        },
        "signature": {"kind": "none", "factor": None, "message": ""},
        "windows": [],
        "repeats": {"values": [], "reproducible": None},
        "consumed": None,
        "evaluations": 0,
        "not_covered": [],
    }


def _give_up(result: dict[str, Any], reason: str, message: str) -> dict[str, Any]:
    result.update(verdict="inconclusive", reason=reason, message=message)
    return result


def _read_place(used: dict[str, Any]) -> dict[str, Any] | None:
    read = used.get("read")
    return None if not read else {**(read.get("place") or {}), "how": read.get("how")}


# -- directions ------------------------------------------------------------------------------------


def typical_size(x0: np.ndarray) -> float:
    """RMS of the parameter's finite scalars; 1 where all are zero (nothing says how large a change is small)."""
    finite = x0[np.isfinite(x0)].astype(np.float64)
    rms = float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0
    return rms if rms > 0.0 else 1.0


def _directions(x0: np.ndarray, key: str, count: int) -> list[np.ndarray]:
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


def _run(generators: Sequence[Generator[Any, Any, Any]], evaluator: Evaluator, vectors: list[np.ndarray]) -> Steps:
    """Drive several step generators side by side; returns their estimates in order."""
    estimates: list[Estimate | None] = [None] * len(generators)
    wanted: dict[int, list[float]] = {}

    def advance(i: int, replies: Any) -> None:
        try:
            wanted[i] = generators[i].send(replies)
        except StopIteration as stop:
            wanted.pop(i, None)
            estimates[i] = stop.value

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
    return estimates


def _settle(
    evaluator: Evaluator,
    directions: list[np.ndarray],
    base: float,
    again: list[float],
    plan: dict[str, Any],
    result: dict[str, Any],
) -> Steps:
    """Estimates along the directions; moves the perturbation behind writes that no hook saw."""
    eps_f, eps_x = EPS.get(plan["objective_dtype"], EPS["float32"]), EPS.get(str(evaluator.x0.dtype), EPS["float32"])
    estimates: list[Estimate] = []
    for _ in range(MOVES):
        generators = [directional_derivative(base, again, 1.0, eps_f, eps_x, EVALUATIONS) for _ in directions]
        estimates = yield from _run(generators, evaluator, directions)
        if evaluator.wiped_at is None:
            break
        evaluator.wiped_at = None
        (reply,) = yield [evaluator.request(evaluator.effective(1e-3 * directions[0]), watch=True)]
        if reply.get("wiped_at") is None or reply["wiped_at"] == evaluator.event:
            break
        evaluator.event = reply["wiped_at"]
    else:
        result["not_covered"].append("the parameter is rewritten again and again before its first use on the tape")
    return estimates


def _confirm(
    overall: Judgement, evaluator: Evaluator, v: np.ndarray, estimate: Estimate, base: float, result: dict[str, Any]
) -> Steps:
    """Does the disagreement persist at the smallest step that could show it? If not, nobody is accused.

    A derivative is a limit. At the step t where |AD - FD| t is CONFIRM_NOISE times the objective's noise, the
    slope can still be told from AD; where it has gone over to AD there (floors, casts, bins, contacts), the
    larger steps crossed something, and the difference is theirs.
    """
    gap = abs(overall.autodiff - overall.finite_difference)
    eps_f, eps_x = (
        EPS.get(evaluator.plan["objective_dtype"], EPS["float32"]),
        EPS.get(str(evaluator.x0.dtype), EPS["float32"]),
    )
    noise = max(estimate.noise if math.isfinite(estimate.noise) else 0.0, eps_f * abs(base))
    if not (math.isfinite(gap) and gap > 0.0 and math.isfinite(estimate.step)):
        return overall
    t = max(CONFIRM_NOISE * noise / gap, CONFIRM_ULPS * eps_x)
    if t > 0.5 * estimate.step:
        return overall
    steps = [t, 2.0 * t, 4.0 * t]
    deltas = [evaluator.effective(sign * step * v) for step in steps for sign in (1.0, -1.0)]
    replies = yield [evaluator.request(d) for d in deltas]
    result["evaluations"] += len(replies)
    values = [evaluator.value(r) for r in replies]
    lengths = [float(d @ v) / float(v @ v) for d in deltas]
    slopes = [
        (values[k] - values[k + 1]) / (lengths[k] - lengths[k + 1]) for k in (0, 2, 4) if lengths[k] != lengths[k + 1]
    ]
    if not slopes or not all(abs(s - overall.autodiff) <= CONFIRM_FRACTION * gap for s in slopes):
        return overall
    if slopes and all(s == 0.0 for s in slopes) and overall.autodiff == 0.0:
        reason = "staircase"
        text = f"AD = 0, and so is every difference up to step {steps[-1]:.2g}; at step {estimate.step:.2g} the slope is {overall.finite_difference:.4g}. The objective is piecewise constant: zero is its derivative, a surrogate is a modelling choice"
    else:
        reason = "scale_dependent"
        found = ", ".join(f"{s:.4g}" for s in slopes)
        text = f"AD = {overall.autodiff:.6g}; FD = {overall.finite_difference:.6g} at step {estimate.step:.2g}, but {found} at steps from {steps[0]:.2g}: the objective is not smooth at this scale"
    return replace(overall, verdict="inconclusive", reason=reason, message=text)


def _magnitude(gradient: np.ndarray, v: np.ndarray) -> float:
    """The usual size of <g, v> for a random v of this RMS: |g| RMS(v)."""
    finite = gradient[np.isfinite(gradient)]
    return float(np.linalg.norm(finite)) * float(np.sqrt(np.mean(v**2)))


def _judged(gradient: np.ndarray, v: np.ndarray, estimate: Estimate, x0: np.ndarray, plan: dict[str, Any]) -> Judgement:
    with np.errstate(invalid="ignore"):
        along = float(gradient @ v)
    eps = max(EPS.get(str(x0.dtype), 0.0), EPS.get(plan["objective_dtype"], EPS["float32"]))
    return judge(along, estimate, eps, _magnitude(gradient, v))


def _direction_row(i: int, j: Judgement, e: Estimate) -> dict[str, Any]:
    return {
        "label": f"random direction {i + 1}",
        "autodiff": j.autodiff,
        "finite_difference": e.value,
        "error": e.error,
        "relative_error": relative(j.autodiff, e.value),
        "verdict": j.verdict,
        "reason": j.reason,
        "message": j.message,
        "step": e.step,
        "noise": e.noise,
        "status": e.status,
        "evaluations": e.evaluations,
        "left": e.left,
        "right": e.right,
        "rungs": e.rungs,
    }


def relative(ad: float, fd: float) -> float:
    """|AD - FD| / |FD|; infinite where only FD is zero."""
    if ad == fd:
        return 0.0
    return abs(ad - fd) / abs(fd) if fd != 0.0 else math.inf


# -- single elements -------------------------------------------------------------------------------


def choose_elements(gradient: np.ndarray, count: int) -> list[int]:
    """All elements of a small parameter; of a large one the largest, the non-finite, zeros, and an even spread."""
    n = gradient.size
    if n <= count:
        return list(range(n))
    picked: list[int] = []
    size = np.where(np.isfinite(gradient), np.abs(gradient), -1.0)
    picked += [int(i) for i in np.argsort(-size, kind="stable")[: count // 4]]
    picked += [int(i) for i in np.flatnonzero(~np.isfinite(gradient))[: count // 4]]
    picked += [int(i) for i in np.flatnonzero(gradient == 0.0)[: count // 8]]
    spread = [int(i) for i in np.linspace(0, n - 1, count)]
    for i in spread:
        if len(set(picked)) >= count:
            break
        picked.append(i)
    return sorted(set(picked))


def _elements(
    evaluator: Evaluator,
    gradient: np.ndarray,
    x0: np.ndarray,
    base: float,
    again: list[float],
    directions: list[np.ndarray],
    estimates: list[Estimate],
    overall: Judgement,
    options: Options,
    cost: float,
    result: dict[str, Any],
) -> Steps:
    settled = [e for e in estimates if e.status == "settled" and math.isfinite(e.step)]
    if x0.size == 1:
        return [_element_row(0, x0, gradient, estimates[0], float(directions[0][0]), result, evaluator.plan)]
    if not settled:
        result["not_covered"].append("single elements: no step size gives a settled difference")
        return []
    affordable = (
        options.elements if math.isinf(options.remaining()) else int(options.remaining() / 2 / max(cost, 1e-4) / 6)
    )
    chosen = choose_elements(gradient, max(0, min(options.elements, affordable)))
    if len(chosen) < x0.size:
        result["not_covered"].append(
            f"{x0.size - len(chosen)} of {x0.size} single elements (they took part in the random directions)"
        )
    if not chosen:
        return []
    best = min(settled, key=lambda e: e.error / max(abs(e.value), 1e-300))
    eps_f, eps_x = EPS.get(evaluator.plan["objective_dtype"], EPS["float32"]), EPS.get(str(x0.dtype), EPS["float32"])
    size = typical_size(x0)
    vectors = []
    for i in chosen:
        v = np.zeros(x0.size)
        v[i] = size
        vectors.append(v)
    found = yield from _run([refine(base, best.step, best.noise, eps_f) for _ in chosen], evaluator, vectors)
    rows = [_element_row(i, x0, gradient, e, size, result, evaluator.plan) for i, e in zip(chosen, found, strict=True)]
    result["evaluations"] += sum(e.evaluations for e in found)
    known_wrong = overall.verdict == "disagree"  # then a disagreeing element is no news
    doubtful = [
        k
        for k, row in enumerate(rows)
        if row["verdict"] == "inconclusive" or (row["verdict"] == "disagree" and not known_wrong)
    ]
    if doubtful and cost * EVALUATIONS * len(doubtful) < options.remaining() / 2:  # look again, with the whole ladder
        generators = [directional_derivative(base, again, 1.0, eps_f, eps_x, EVALUATIONS) for _ in doubtful]
        better = yield from _run(generators, evaluator, [vectors[k] for k in doubtful])
        result["evaluations"] += sum(e.evaluations for e in better)
        for k, e in zip(doubtful, better, strict=True):
            rows[k] = _element_row(chosen[k], x0, gradient, e, size, result, evaluator.plan)
    else:
        for k in doubtful:  # one rough look accuses nobody
            if rows[k]["verdict"] == "disagree":
                rows[k]["verdict"] = "inconclusive"
    return rows


def _element_row(
    i: int, x0: np.ndarray, gradient: np.ndarray, e: Estimate, size: float, result: dict[str, Any], plan: dict[str, Any]
) -> dict[str, Any]:
    """One element, in units of the parameter itself (the estimate is per `size`)."""
    ad, fd, error = float(gradient[i]), e.value / size, e.error / size
    eps = max(EPS.get(str(x0.dtype), 0.0), EPS.get(plan["objective_dtype"], EPS["float32"]))
    finite = gradient[np.isfinite(gradient)]
    j = judge(ad * size, e, eps, float(np.sqrt(np.mean(finite**2))) * size if finite.size else 0.0)
    return {
        "index": i,
        "component": component(i, result["parameter"]["shape"], x0.size),
        "autodiff": ad,
        "finite_difference": fd,
        "error": error,
        "ratio": ad / fd if fd else (1.0 if ad == 0.0 else math.inf),
        "verdict": j.verdict,
        "status": e.status,
        "judgement": j,
        "estimate": e,
    }


def component(i: int, shape: list[int], scalars: int) -> str:
    """'[3]' for a scalar array, '[3].y' for a vector element, '[3](0,1)' for a matrix component."""
    elements = int(np.prod(shape)) if shape else 1
    per = max(1, scalars // max(1, elements))
    where = ", ".join(str(int(n)) for n in np.unravel_index(i // per, shape)) if shape else "0"
    if per == 1:
        return f"[{where}]"
    inside = i % per
    return f"[{where}]" + (f".{'xyzw'[inside]}" if per <= 4 else f"({inside})")


# -- the conclusion --------------------------------------------------------------------------------


def _conclude(
    result: dict[str, Any],
    overall: Judgement,
    judged: list[Judgement],
    gradient: np.ndarray,
    directions: list[np.ndarray],
    estimates: list[Estimate],
    elements: list[dict[str, Any]],
    plan: dict[str, Any],
) -> None:
    result["verdict"], result["reason"], result["message"] = overall.verdict, overall.reason, overall.message
    result["gradient"].update(
        autodiff=overall.autodiff,
        finite_difference=overall.finite_difference,
        error=overall.error,
        relative_error=relative(overall.autodiff, overall.finite_difference),
    )
    measured = [row for row in elements if row["status"] == "settled"]
    settled = [k for k, e in enumerate(estimates) if e.status == "settled"]
    eps = max(EPS.get(str(result["parameter"]["dtype"]), 0.0), EPS.get(plan["objective_dtype"], EPS["float32"]))
    how = signature(
        [r["autodiff"] for r in measured],
        [r["finite_difference"] for r in measured],
        [r["error"] for r in measured],
        [judged[k].autodiff for k in settled],
        [estimates[k].value for k in settled],
        [estimates[k].error for k in settled],
        round_off(eps),
    )
    result["signature"] = {
        "kind": how.kind if overall.verdict == "disagree" else "none",
        "factor": how.factor,
        "message": how.message if overall.verdict == "disagree" else "",
    }


# -- windows ---------------------------------------------------------------------------------------


def _windows(
    evaluator: Evaluator,
    direction: np.ndarray,
    base: float,
    plan: dict[str, Any],
    reference: Reply,
    options: Options,
    cost: float,
    result: dict[str, Any],
) -> Steps:
    """Each backward call by itself: its own gradient against its own loss, from the tape's first use on."""
    calls = plan["backward_calls"]
    chosen = (
        calls
        if len(calls) <= options.windows
        else [calls[k] for k in np.unique(np.linspace(0, len(calls) - 1, options.windows).astype(int))]
    )
    if len(chosen) < len(calls):
        result["not_covered"].append(f"the own windows of {len(calls) - len(chosen)} of {len(calls)} backward calls")
    rows = []
    eps_f, eps_x = EPS.get(plan["objective_dtype"], EPS["float32"]), EPS.get(str(evaluator.x0.dtype), EPS["float32"])
    for call in chosen:
        use = evaluator.parameter["uses"].get(str(call))
        own = reference["contributions"].get(call, {}).get(evaluator.parameter["key"])
        if use is None or use["first_use"] < 0 or own is None or plan.get("objective"):
            continue
        if cost * EVALUATIONS > options.remaining() / 2:
            result["not_covered"].append(f"the own window of backward call {call}, for lack of time")
            continue
        parameter = {**evaluator.parameter, "check_event": use["first_use"]}
        window = Evaluator(plan, parameter, [call], evaluator.x0, reference, max(use["first_use"], evaluator.event))
        value = window.value(reference)
        (estimate,) = yield from _run(
            [directional_derivative(value, [], 1.0, eps_f, eps_x, EVALUATIONS)], window, [direction]
        )
        result["evaluations"] += estimate.evaluations
        j = _judged(np.asarray(own), direction, estimate, evaluator.x0, plan)
        place = plan["call_places"].get(str(call)) or {}
        rows.append(
            {
                "backward_call": call,
                "verdict": j.verdict,
                "autodiff": j.autodiff,
                "finite_difference": j.finite_difference,
                "error": j.error,
                "message": j.message,
                "file": place.get("file"),
                "line": place.get("line"),
            }
        )
    return rows

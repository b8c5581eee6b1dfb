"""Is the consumed gradient the derivative of the objective? Which evaluations that takes, and what they say.

`check_iteration` is a generator: it yields lists of requests (see `evaluate`), is sent the replies, and
returns one result (the contract's `checks` entry) for each parameter. It knows no engine and no Warp: the
fork engine drives it inside the program, the rerun engine from outside.
"""

from __future__ import annotations

import hashlib
import math
import os
import time
from dataclasses import replace
from typing import Any, Callable

import numpy as np

from . import digits
from .allowance import (
    BRIEFLY,
    CONFIRMING,
    affordable,
    allowance,
    another_step,
    left_out,
    seconds_of_one,
    spared,
    sparingly,
    too_slow,
)
from .confirm import confirm
from .differences import Estimate, directional_derivative
from .elements import component, measure_elements
from .estimate import BRIEFLY_ENOUGH, GOOD_ENOUGH
from .evaluator import (
    EVALUATIONS,
    Evaluator,
    Options,
    Reply,
    Steps,
    coarsest,
    direction_key,
    judge_direction,
    make_request,
    precisions,
    random_directions,
    run_side_by_side,
    typical_size,
)
from .growth import measure_growth
from .host_values import measure_host_values, measure_reported
from .line import EXPONENTS, measure_line, update_between
from .signature import signature
from .stated import may_be_scaled, measure_own_loss
from .verdict import Judgement, combine, decisive, round_off, within_kinks
from .windows import contributed, measure_windows

NO_BEGINNING = (
    "the last link of the chain of tapes does not start from what the parameter held when the iteration began: the "
    "checkpoint is not restored, or it begins where no launch or copy reads the parameter"
)
UNSEEDED = (
    "backward is called without a loss, and no array that the tape wrote holds a gradient: nothing is seeded, and every "
    "gradient stays zero"
)
MOVES = 3  # how often the moment of the perturbation is moved behind a write that no hook saw
WEAK = ("imprecise", "unsettled", "kink", "quantised")  # what too small a signal looks like
REPEATS = 2  # of the unperturbed program, one where the time is short
MANY_SCALARS = 64  # a parameter of which a random direction shows little


def check_iteration(plan: dict[str, Any], options: Options) -> Steps:
    """Check every parameter of one iteration; returns a list of results."""
    calls: list[int] = sorted({*plan["backward_calls"], *(plan["objective_calls"] or [])})
    last = max(plan["objective_calls"] or calls)
    first = [make_request(plan, [], calls, max(calls), kind="reference")]
    short = allowance(options.directions, options.remaining(), options.iteration_seconds)
    repeated = 1 if short is None or short.brief else REPEATS
    again = [make_request(plan, [], plan["objective_calls"] or calls, last) for _ in range(repeated)]
    slow = options.iteration_seconds >= options.sparing_from and bool(plan.get("losses_seen"))
    started = time.perf_counter()
    reference, *repeats = yield first if slow else [*first, *again]
    traced = as_traced(plan, reference) if slow else None
    if traced is not None and reference["forward_seconds"]:
        repeats, per_evaluation = [traced], reference["forward_seconds"]
    else:
        if slow:
            repeats = yield again
        per_evaluation = seconds_of_one(time.perf_counter() - started, reference, repeats)
    seen = {str(k): v for k, v in reference.get("call_events", {}).items() if k in plan["backward_calls"]}
    if reference["ok"] and seen != plan["call_events"]:
        reference["ok"], reference["reason"], reference["error"] = (
            False,
            "not_repeated",
            "the program does not repeat its own steps from run to run: the same backward call came at another event",
        )
    results = []
    for parameter in plan["parameters"]:
        results.append((yield from _check_parameter(plan, parameter, reference, repeats, options, per_evaluation)))
    return results


def stated_once(calls: list[int], repeated: list[int]) -> list[int]:
    """The calls without those that run the one before once more, from the same seed: they state no objective of their own."""
    return [c for c in calls if c not in repeated or c - 1 not in calls]


def as_traced(plan: dict[str, Any], reference: Reply) -> Reply | None:
    """The watched run as a repeat of the reference; None where its losses are not the very same, or nobody noted them.

    It was another process: where it came to the same bits, the program repeats itself, and needs no run to show it.
    """
    seen = {int(call): loss for call, loss in (plan.get("losses_seen") or {}).items()}
    same = bool(seen) and seen == reference["losses"] and not plan.get("objective") and not plan["outputs"]
    return {**reference, "traced": True} if same and reference["ok"] else None


def another_read(parameter: dict[str, Any]) -> str:
    """What is not covered where an update may use either of two gradients, in words."""
    place = parameter["undecided"]
    where = f" at {os.path.basename(place['file'])}:{place['line']}" if place.get("file") else ""
    return (
        f"which gradient the update uses: that of the array which {parameter['name']} held before is read too{where}, and the "
        "steps of this run do not tell"
    )


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
            reference["reason"] or ("not_measured" if reference["error"] else "not_repeated"),
            reference["error"]
            or f"{parameter['name']} or its gradient was not seen again when the program was run once more: it does not repeat its own steps",
        )
    if not set(used["calls"]) <= set(plan["backward_calls"]):
        return _give_up(result, "not_measured", "the update could not be told from the next iteration's")
    result["start"] = _start(x0)
    added = used["calls"] or list(plan["backward_calls"])
    once = stated_once(added, plan["repeated_calls"])
    calls = plan["objective_calls"] or once
    gradient = np.asarray(used["gradient"], dtype=np.float64)
    if parameter.get("zeroed_under_view"):
        used, gradient = {**used, "when": "view_zeroed", "norm": 0.0}, np.zeros_like(gradient)
    other: Any = used.get(parameter.get("followed"))
    if other is not None and other.shape == gradient.shape:  # the steps show that the update uses this one
        used = {**used, "when": parameter["followed"], "norm": float(np.linalg.norm(other))}
        gradient = np.asarray(other, dtype=np.float64)
    elif parameter.get("undecided"):
        result["not_covered"].append(another_read(parameter))
    event = parameter["event"]
    if parameter.get("begins"):
        event, x0 = yield from beginning_of_chain(plan, parameter, x0)
        if x0 is None:
            return _give_up(result, "not_measured", NO_BEGINNING)
    evaluator = Evaluator(plan, parameter, calls, x0, reference, event)
    base = evaluator.value(reference)
    again = [evaluator.value(r) for r in repeats]
    result["objective"] |= {"value": base} | _seeding(reference, calls)
    result["repeats"] = {
        "values": [base, *again],
        "reproducible": all(v == base or (v != v and base != base) for v in again),
    }
    result["consumed"] = {k: used[k] for k in ("when", "calls", "discarded", "edited", "norm", "parts")} | {
        "read": _read_place(used)
    }
    seeded = reference["losses"] or any(reference["outputs"][k].size for k in calls if k in reference["outputs"])
    if not plan.get("objective") and not seeded:
        return _give_up(result, "unseeded", UNSEEDED)
    if any(not r["ok"] for r in repeats):
        return _give_up(result, "not_measured", next(r["error"] for r in repeats if not r["ok"]))

    sparing = cost >= options.sparing_from
    if sparing:
        options = replace(options, remaining=sparingly(options.remaining, cost))
    directions = random_directions(x0, direction_key(parameter), options.directions)
    allowed = allowance(len(directions), options.remaining(), cost)
    if allowed is None:
        return _give_up(result, "time", too_slow(options.remaining(), cost))
    wanted, directions = len(directions), directions[: allowed.directions]

    def more() -> bool:
        return allowed.brief and another_step(options.remaining(), cost)

    enough = BRIEFLY_ENOUGH if sparing else GOOD_ENOUGH
    estimates = yield from _settle(evaluator, directions, base, again, plan, result, allowed.evaluations, more, enough)
    taken = max(e.evaluations for e in estimates)
    result["not_covered"] += [spared(cost, taken)] if sparing else left_out(wanted, allowed, cost, taken)
    judged = [judge_direction(gradient, v, e, x0, plan) for v, e in zip(directions, estimates, strict=True)]
    run_again = sum(not r.get("traced") for r in repeats)
    result["evaluations"] = 1 + run_again + sum(e.evaluations for e in estimates)
    result["gradient"]["directions"] = [
        _direction_row(i, j, e) for i, (j, e) in enumerate(zip(judged, estimates, strict=True))
    ]
    result["contributed"] = contributed(reference, parameter["key"], once, directions[0])
    repeated = [c for c in plan["repeated_calls"] if c not in once and (c in added or plan["objective_calls"])]
    result["repeated"] = [plan["call_places"].get(str(c)) or result["horizon"]["to"] or {} for c in repeated]
    overall = combine(judged)

    if overall.verdict == "disagree" or overall.reason in ("imprecise", "unsettled"):
        k = decisive(overall, judged)
        count = affordable(options.remaining(), cost)
        brief = allowed.brief or count < CONFIRMING
        if count >= BRIEFLY:
            overall = yield from _confirm(overall, evaluator, directions[k], estimates[k], base, result, brief)
        elif overall.verdict == "disagree":
            unconfirmed = f"{overall.message}. The time did not allow to confirm it at finer steps"
            overall = replace(overall, verdict="inconclusive", reason="time", message=unconfirmed)
    if sparing:
        options = replace(options, remaining=lambda: 0.0)
    whole = affordable(options.remaining(), cost) >= EVALUATIONS
    if overall.reason in WEAK and x0.size >= MANY_SCALARS and whole:
        overall = yield from _along_gradient(overall, judged, evaluator, gradient, directions[0], base, again, result)
    elements = yield from measure_elements(
        evaluator, gradient, x0, base, again, directions, estimates, overall, options, cost, result
    )
    wrong = [row for row in elements if row["verdict"] == "disagree"]
    if wrong and overall.verdict == "agree":  # a fault in few elements hides in random directions
        worst = max(wrong, key=lambda row: row["judgement"].bands_off)
        v = np.zeros(x0.size)
        v[worst["index"]] = typical_size(x0)
        overall = yield from _confirm(worst["judgement"], evaluator, v, worst["estimate"], base, result, allowed.brief)
    if overall.verdict == "disagree" and parameter.get("spans_updates"):
        overall = replace(
            overall,
            verdict="inconclusive",
            reason="spans_updates",
            message=f"{overall.message}. But other parameters were updated between the backward calls whose gradients "
            "are summed here: the sum is the gradient of no single objective",
        )
    if overall.verdict == "disagree" and plan.get("products"):
        overall = replace(
            overall,
            verdict="inconclusive",
            reason="adjoint_in_loss",
            message=f"{overall.message}. But a segment's loss has the adjoint of the state behind it as a factor: its losses "
            "are not what the gradient is of",
        )
    for row in elements:
        row.pop("judgement")
        row.pop("estimate")
        if overall.verdict != "disagree" and row["verdict"] == "disagree":
            row["verdict"] = "inconclusive"
    result["gradient"]["elements"] = elements
    _conclude(result, overall, judged, gradient, directions, estimates, elements, plan)
    if overall.verdict != "disagree":
        result["digits"] = _digits(result, x0, gradient, base, plan)
    factor = may_be_scaled(result, plan)
    if factor is not None:
        yield from measure_own_loss(evaluator, gradient, directions[0], factor, result)
    if overall.verdict == "agree" and plan["objective_kind"] == "seeded" and not plan.get("objective") and not sparing:
        yield from measure_host_values(evaluator, gradient, directions, options, cost, result)
    if overall.verdict == "agree" and plan.get("reported") and not sparing and not used["edited"]:
        yield from measure_reported(evaluator, gradient, directions, options, cost, result)
    yield from measure_growth(evaluator, directions[0], estimates[0], base, options, cost, result)
    if overall.verdict == "disagree" or len(plan["backward_calls"]) > 1:
        result["windows"] = yield from measure_windows(
            evaluator, directions[0], base, plan, reference, options, cost, result
        )
    if options.line:
        result["here"] = {"parameter": x0, "gradient": gradient}
        if overall.verdict == "agree" and affordable(options.remaining(), cost) < len(EXPONENTS):
            result["not_covered"].append("the loss along the gradient, for lack of time")
        elif overall.verdict == "agree":
            noise = max((e.noise for e in estimates if math.isfinite(e.noise)), default=0.0)
            result["line"] = yield from measure_line(evaluator, gradient, base, noise)
            result["evaluations"] += len(result["line"]["points"]) if result["line"] else 0
    if sparing:  # that is why, however much time there is
        result["not_covered"] = [said.removesuffix(", for lack of time") for said in result["not_covered"]]
    return result


def beginning_of_chain(plan: dict[str, Any], parameter: dict[str, Any], x0: np.ndarray) -> Steps:
    """(event, values): where a perturbation is what the last link restores as its start; (-1, None) if nowhere."""
    (direction,) = random_directions(x0, direction_key(parameter), 1)[:1]
    for event in parameter["begins"]:
        evaluator = Evaluator(plan, parameter, plan["backward_calls"], x0, {}, event)
        (reply,) = yield [evaluator.request(evaluator.effective(1e-2 * direction))]
        if reply["ok"] and reply["survived"]:
            return event, reply["values"][parameter["key"]]
    return -1, None


def note_updates(checks: list[dict[str, Any]]) -> None:
    """Adds to every check of `Options.line` what the update after it did, where the next iteration was checked too.

    Takes the arrays out again that only this needs.
    """
    starts = {(c["parameter"]["key"], c["iteration"]): c["here"] for c in checks if "here" in c}
    for check in checks:
        here = check.pop("here", None)
        following = starts.get((check["parameter"]["key"], check["iteration"] + 1))
        if here is not None and following is not None and here["parameter"].shape == following["parameter"].shape:
            check["update"] = update_between(here["parameter"], here["gradient"], following["parameter"])


def _seeding(reference: Reply, calls: list[int]) -> dict[str, Any]:
    """The one value that seeds all outputs, and how many scalars they are; empty where there is no such value."""
    seeds = [reference["seeds"][k] for k in calls if k in reference["outputs"]]
    if not seeds or any(k in reference["losses"] for k in calls):
        return {}
    values = np.concatenate(seeds)
    return {"seed": float(values[0]), "outputs": len(values)} if len(values) and np.all(values == values[0]) else {}


def _blank(plan: dict[str, Any], parameter: dict[str, Any], reference: Reply) -> dict[str, Any]:
    places = reference.get("places", {})
    return {
        "iteration": plan["iteration"],
        "parameter": {
            k: parameter.get(k) for k in ("name", "dtype", "shape", "scalars", "fields", "allocated", "key", "orphan")
        },
        "objective": {
            "name": plan.get("objective") or plan["objective_name"],
            "kind": "expression" if plan.get("objective") else plan["objective_kind"],
            "value": None,
        },
        "horizon": {
            "windows": len(plan["backward_calls"]),
            "ops": plan["ops"],
            "full": not plan.get("segment"),
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
            "resolution": None,
            "size": None,
            "directions": [],
            "elements": [],
        },
        "signature": {"kind": "none", "factor": None, "message": "", "horizons": []},
        "contributed": None,
        "repeated": [],
        "windows": [],
        "repeats": {"values": [], "reproducible": None},
        "consumed": None,
        "start": None,
        "evaluations": 0,
        "not_covered": [],
    }


def _start(x0: np.ndarray) -> dict[str, Any]:
    """The point at which the derivative is taken, so that a later check can tell whether it stands at the same one."""
    digest = hashlib.sha256(np.ascontiguousarray(x0).tobytes()).hexdigest()[:16]
    return {"digest": digest, "rms": typical_size(x0), "first": [float(x) for x in x0[:4]]}


def _give_up(result: dict[str, Any], reason: str, message: str) -> dict[str, Any]:
    result.update(verdict="inconclusive", reason=reason, message=message)
    return result


def _digits(
    result: dict[str, Any], x0: np.ndarray, gradient: np.ndarray, base: float, plan: dict[str, Any]
) -> dict[str, Any]:
    """What one floating-point step of the parameter, and of the objective, means here."""
    own, about = digits.of_parameter(x0, gradient, base), result["parameter"]
    if own is not None:
        own["component"] = component(own["index"], about["shape"], x0.size, about.get("fields") or ())
        own["dtype"] = str(x0.dtype)
    along = [abs(row["autodiff"]) for row in result["gradient"]["directions"] if math.isfinite(row["autodiff"])]
    objective = digits.of_objective(base, plan["objective_dtype"], max(along, default=0.0))
    return {"parameter": own, "objective": objective}


def _read_place(used: dict[str, Any]) -> dict[str, Any] | None:
    read = used.get("read")
    return None if not read else {**(read.get("place") or {}), "how": read.get("how")}


def _settle(
    evaluator: Evaluator,
    directions: list[np.ndarray],
    base: float,
    again: list[float],
    plan: dict[str, Any],
    result: dict[str, Any],
    evaluations: int = EVALUATIONS,
    more: Callable[[], bool] = lambda: False,
    enough: float = GOOD_ENOUGH,
) -> Steps:
    """Estimates along the directions; moves the perturbation behind writes that no hook saw."""
    eps_f, eps_x = precisions(plan, evaluator.x0.dtype)
    estimates: list[Estimate] = []
    for _ in range(MOVES):
        generators = [
            directional_derivative(base, again, 1.0, eps_f, eps_x, evaluations, more, enough) for _ in directions
        ]
        estimates = yield from run_side_by_side(generators, evaluator, directions)
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


def _along_gradient(
    overall: Judgement,
    judged: list[Judgement],
    evaluator: Evaluator,
    gradient: np.ndarray,
    direction: np.ndarray,
    base: float,
    again: list[float],
    result: dict[str, Any],
) -> Steps:
    """One more direction where random ones say too little: in it, all scalars push the objective the same way.

    Of n scalars a random direction moves the objective by some |g| RMS(v), this one by up to sqrt(n) times that. So it is
    with kinks: AD, the slope on one side of each, may be off along itself by sqrt(n) times a random direction's gap.
    """
    if not np.all(np.isfinite(gradient)) or not np.any(gradient):
        return overall
    v = np.abs(direction) * np.where(gradient == 0.0, np.sign(direction), np.sign(gradient))
    estimates = yield from _settle(evaluator, [v], base, again, evaluator.plan, result)
    result["evaluations"] += estimates[0].evaluations
    j = judge_direction(gradient, v, estimates[0], evaluator.x0, evaluator.plan)
    j = within_kinks(j, judged, math.sqrt(evaluator.x0.size))
    result["gradient"]["directions"].append({**_direction_row(0, j, estimates[0]), "label": "along the gradient"})
    if j.verdict == "disagree":
        return (yield from _confirm(j, evaluator, v, estimates[0], base, result))
    if j.verdict == "agree":
        result["not_covered"].append(
            f"directions other than the gradient's own: random ones are undecided ({overall.reason})"
        )
        return j
    return overall


def _confirm(
    overall: Judgement,
    evaluator: Evaluator,
    v: np.ndarray,
    estimate: Estimate,
    base: float,
    result: dict[str, Any],
    brief: bool = False,
) -> Steps:
    """`overall`, unless its disagreement along v is one of larger steps only (see `confirm`)."""
    eps = precisions(evaluator.plan, evaluator.x0.dtype)
    steps = confirm(overall, estimate, base, result["repeats"]["values"], *eps, brief=brief)
    ((judged, used),) = yield from run_side_by_side([steps], evaluator, [v])
    result["evaluations"] += used
    return judged


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
        resolution=overall.resolution,
        size=overall.size if math.isfinite(overall.size) else None,
    )
    measured = [row for row in elements if row["status"] == "settled"]
    settled = [k for k, e in enumerate(estimates) if e.status == "settled"]
    how = signature(
        [r["autodiff"] for r in measured],
        [r["finite_difference"] for r in measured],
        [r["error"] for r in measured],
        [judged[k].autodiff for k in settled],
        [estimates[k].value for k in settled],
        [estimates[k].error for k in settled],
        round_off(coarsest(plan, result["parameter"]["dtype"])),
    )
    result["signature"] = {
        "kind": how.kind if overall.verdict == "disagree" else "none",
        "factor": how.factor,
        "message": how.message if overall.verdict == "disagree" else "",
        "horizons": [],
    }

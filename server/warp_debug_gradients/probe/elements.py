"""Single elements of a gradient: which to measure, and what differences say of each."""

from __future__ import annotations

import math
from typing import Any, Iterable

import numpy as np

from .differences import Estimate, directional_derivative, refine
from .evaluator import EVALUATIONS, Evaluator, Options, Steps, coarsest, precisions, run_side_by_side, typical_size
from .verdict import Judgement, judge


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


def measure_elements(
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
    count = max(0, min(options.elements, affordable))
    pinned = evaluator.parameter.get("elements")  # those of an earlier check that this one is compared with
    chosen = [i for i in pinned if i < x0.size] if pinned and count else choose_elements(gradient, count)
    if len(chosen) < x0.size:
        result["not_covered"].append(
            f"{x0.size - len(chosen)} of {x0.size} single elements of {result['parameter']['name']} (they took part in the random directions)"
        )
    if not chosen:
        return []
    best = min(settled, key=lambda e: e.error / max(abs(e.value), 1e-300))
    eps_f, eps_x = precisions(evaluator.plan, x0.dtype)
    size = typical_size(x0)
    vectors = []
    for i in chosen:
        v = np.zeros(x0.size)
        v[i] = size
        vectors.append(v)
    found = yield from run_side_by_side(
        [refine(base, best.step, best.noise, eps_f) for _ in chosen], evaluator, vectors
    )
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
        better = yield from run_side_by_side(generators, evaluator, [vectors[k] for k in doubtful])
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
    finite = gradient[np.isfinite(gradient)]
    j = judge(ad * size, e, coarsest(plan, x0.dtype), float(np.sqrt(np.mean(finite**2))) * size if finite.size else 0.0)
    return {
        "index": i,
        "component": component(i, result["parameter"]["shape"], x0.size, result["parameter"].get("fields") or ()),
        "autodiff": ad,
        "finite_difference": fd,
        "error": error,
        "ratio": ad / fd if fd else (1.0 if ad == 0.0 else math.inf),
        "verdict": j.verdict,
        "status": e.status,
        "judgement": j,
        "estimate": e,
    }


def component(i: int, shape: list[int], scalars: int, fields: Iterable[tuple[str, int]] = ()) -> str:
    """'[3]' for a scalar array, '[3].y' for a vector element, '[3](4)' for a matrix component, '[3].rest' for a field
    of a struct (those lie field by field)."""
    elements = int(np.prod(shape)) if shape else 1
    for name, size in fields:
        if i < size * elements:
            plain = component(i, shape, size * elements)
            where, bracket, inside = plain.partition("]")
            return f"{where}{bracket}.{name}{inside}"
        i -= size * elements
    per = max(1, scalars // max(1, elements))
    where = ", ".join(str(int(n)) for n in np.unravel_index(i // per, shape)) if shape else "0"
    if per == 1:
        return f"[{where}]"
    inside = i % per
    return f"[{where}]" + (f".{'xyzw'[inside]}" if per <= 4 else f"({inside})")

"""From the passes' numbers to a ledger as it stands in ledger.json. Pure."""

from __future__ import annotations

import math
from typing import Any

from .check import relative
from .cuts import Cuts
from .ledger import (
    SIGNIFICANT_NOISE,
    SIGNIFICANT_SHARE,
    Jump,
    Term,
    book,
    by_weight,
    group_jumps,
    is_flat,
    is_significant,
    labelled_term,
)
from .ledger_passes import Passes

FLOAT32 = 1.2e-7
ACCOUNTED = 0.1  # of AD - FD may be something else
LARGER, SMALLER = 4.0, 0.25  # factors of the step
KEPT = 0.5  # of AD - FD that is there at a smaller step as well, if it is an error


def derivative_of(plus: float, now: float, minus: float, step: float) -> Term | None:
    """The objective's derivative along the direction; None where an objective is not finite."""
    if not all(map(math.isfinite, (plus, now, minus))):
        return None
    return Term((plus - now) / step, (now - minus) / step, FLOAT32 * abs(now) / step)


def assemble(
    passes: Passes, measured: Term | None, step: float, accumulates: bool, cuts: Cuts | None
) -> dict[str, Any]:
    """The numbers of a ledger.

    measured: the objective's derivative; None where the pass is seeded by arrays: <seed, tangent> is the derivative
    of the implied objective. accumulates: earlier backward calls of this iteration have filled the parameter's buffer.
    """
    as_is, restored = passes.as_is, passes.restored
    derivative = measured if measured is not None else as_is["seed"]
    scale = abs(derivative.value) or abs(as_is["autodiff"].value) or 1.0
    fixed = {(j.op, j.kind): j.term.value for j in restored["jumps"]} if restored is not None else None
    rows = group_jumps([j for j in as_is["jumps"] if j.kind != "stretch"], scale, fixed)
    stretches = stretch_rows(as_is["jumps"], scale, cuts)
    seed = labelled_term(as_is["seed"] - derivative, scale, writer=as_is.get("seed_writer"))
    own = sum((t for t, d in as_is["stale"] if d["is_parameter"]), Term())
    stale = [labelled_term(t, scale, **d) for t, d in as_is["stale"] if not (accumulates and d["is_parameter"])]
    truncated = [labelled_term(t, scale, **d) for t, d in as_is["entering"]]
    for part in (stale, truncated):
        part.sort(key=lambda row: -abs(row["value"]))
    terms = (
        seed["value"]
        + sum(r["value"] for r in stale)
        + sum(j.term.value for j in as_is["jumps"])
        - sum(r["value"] for r in truncated)
    )
    ad = (as_is["autodiff"] - own).value if accumulates else as_is["autodiff"].value
    total = sum((j.term for j in as_is["jumps"]), Term())
    outside = sum((t for t, d in as_is["stale"] if not (accumulates and d["is_parameter"])), Term())
    outside = outside - sum((t for t, _ in as_is["entering"]), Term())
    broken = as_is["nonfinite"] is not None
    rest = labelled_term(sum((j.term for j in as_is["jumps"] if j.kind == "stretch"), Term()), scale)
    everything = not any(row["significant"] for row in (*stretches, rest))
    return {
        "step": step,
        "finite_difference": derivative.value,
        "autodiff": math.nan if broken else ad,
        "error": (total + as_is["seed"] + outside).noise,
        "seed": seed,
        "stale": stale,
        "truncated": truncated,
        "jumps": [] if broken else rows,
        "stretches": [] if broken else stretches,
        "unrecorded": rest,
        "book": [] if broken else book(as_is["jumps"], seed["value"] + sum(r["value"] for r in stale)),
        "flat": not broken and is_flat(rows, [seed], stale, truncated, stretches, [rest]),
        "balance": (ad - derivative.value - terms) / scale,
        "nonfinite": as_is["nonfinite"],
        "overwrites": merged(as_is["clobbered"]),
        "what_if": _what_if(derivative.value, passes) if everything else None,  # else not all reads can be restored
    }


def settle_noise(ledger: dict[str, Any]) -> None:
    """Jumps that are noise after all: as a launch alone has shown, the recorded runs put its tangent off by as much, or
    the round-off of the sums in it and in its adjoint does."""
    alone = {_at(row): row for row in ledger["isolated"]}
    for jump in ledger["jumps"]:
        row = alone.get(_at(jump))
        if row is None or jump["kind"] == "unrecorded" or not jump["value"] or jump.get("host_values"):
            continue  # a number that the launch is given moves its results besides the tangents
        share = jump["share"] / jump["value"]
        measured = math.hypot(row.get("tangent_noise") or 0.0, row.get("sum_noise") or 0.0)
        jump["noise"] = max(jump["noise"], abs(share) * measured)
        if jump["significant"] and not is_significant(jump["share"], jump["noise"], 1.0):
            jump.update(kind="adjoint", significant=False, lost=[])
            row["blamed"] = False
    ledger["jumps"].sort(key=by_weight)
    terms = (ledger["jumps"], [ledger["seed"], ledger["unrecorded"]], ledger["stale"], ledger["truncated"])
    ledger["flat"] = ledger["nonfinite"] is None and is_flat(*terms, ledger["stretches"])


def better_step(ledger: dict[str, Any]) -> float | None:
    """A factor for the step, where a jump or another term would count but for its noise; None where none does.

    Round-off, which `error` estimates, asks for a larger step; what is above it is curvature, and asks for a smaller one.
    """
    if not ledger["flat"] or ledger["nonfinite"] is not None or ledger["stretches"]:
        return None
    hidden = _hidden(ledger)
    if not hidden > SIGNIFICANT_SHARE * abs(ledger["finite_difference"]):
        return None
    return SMALLER if hidden > SIGNIFICANT_NOISE * ledger["error"] else LARGER


def is_better(other: dict[str, Any], ledger: dict[str, Any]) -> bool:
    """Whether the same ledger at another step tells more than a flat one.

    What stands out at a larger step alone is a kink that it crosses. At a smaller step it is an error if AD is off at
    both steps.
    """
    if other["nonfinite"] is not None or other["stretches"]:
        return False
    if other["flat"]:
        return _hidden(other) < _hidden(ledger)
    off, before = (abs(each["autodiff"] - each["finite_difference"]) for each in (other, ledger))
    return other["step"] < ledger["step"] and off >= KEPT * before > SIGNIFICANT_SHARE * abs(other["finite_difference"])


def _hidden(ledger: dict[str, Any]) -> float:
    """The largest jump or other term within its noise."""
    rows = [*ledger["jumps"], ledger["seed"], *ledger["stale"], *ledger["truncated"]]
    return max((abs(row["value"]) for row in rows if not row["significant"]), default=0.0)


def accounted_for(ledger: dict[str, Any]) -> bool:
    """Whether what no adjoint follows (lost terms, unrecorded writes) is all that AD is off by: no sum's round-off."""
    broken = [j for j in ledger["jumps"] if j["kind"] in ("lost", "unrecorded") and j["significant"]]
    off = ledger["autodiff"] - ledger["finite_difference"]
    return bool(broken) and abs(sum(j["value"] for j in broken) - off) <= ACCOUNTED * abs(off)


def _at(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["file"], row["line"], row["kernel"]


def stretch_rows(jumps: list[Jump], scale: float, cuts: Cuts | None) -> list[dict[str, Any]]:
    """The stretches whose operations were not recorded singly, in order."""
    rows = []
    for jump in sorted((j for j in jumps if j.kind == "stretch"), key=lambda j: j.op):
        assert cuts is not None
        stretch = cuts.stretch(jump.op)
        rows.append(labelled_term(jump.term, scale, first_op=stretch.start, last_op=stretch.stop - 1))
    return rows


def sampled(ledger: dict[str, Any]) -> str:
    """What of a long tape was recorded, in a sentence; empty where it was all of it."""
    stretches, rest = ledger["stretches"], ledger["unrecorded"]
    if not stretches:
        return ""
    single = f"{ledger['ops_recorded']:,} of its {ledger['ops']:,} operations" if ledger["ops_recorded"] else "none"
    return (
        f"The tape is too long to record every operation: {single} were recorded singly, the others at the ends of "
        f"{len(stretches)} stretches, which put in {100.0 * rest['share']:.3g}% of the derivative "
        f"(noise {100.0 * rest['noise']:.2g}%); overwrites and launch lines within them were not looked at"
    )


def _what_if(derivative: float, passes: Passes) -> dict[str, Any] | None:
    if passes.restored is None:
        return None
    before, after = passes.as_is["autodiff"].value, passes.restored["autodiff"].value
    return {
        **what_if_numbers(derivative, before, after),
        "arrays": [
            {
                "variable": c["variable"],
                "allocated": c["allocated"],
                "restored": t.value,
                "relative_error": relative(t.value, derivative),
            }
            for c, t in passes.alone
        ],
    }


def what_if_numbers(derivative: float, before: float, after: float) -> dict[str, float]:
    """AD as it is and as it would be, beside FD."""
    return {
        "finite_difference": derivative,
        "as_is": before,
        "restored": after,
        "relative_error_as_is": relative(before, derivative),
        "relative_error_restored": relative(after, derivative),
    }


def merged(clobbered: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row a victim, reader and writer line; the first op, how many, the largest change; harmful first."""
    groups: dict[Any, dict[str, Any]] = {}
    for item in sorted(clobbered, key=lambda c: c["op"]):
        writer = item["writer"] or {}
        key = (
            item["variable"],
            item["argument"],
            item["reader"]["file"],
            item["reader"]["line"],
            item["reader"]["kernel"],
            writer.get("what"),
            writer.get("line"),
            item["harmful"],
        )
        row = groups.get(key)
        if row is None:
            groups[key] = {**{k: v for k, v in item.items() if k != "root"}, "ops": 1}
            continue
        row["ops"] += 1
        if item.get("path") and row.get("path") and item["path"] not in (row["path"], row["path"].removesuffix(", …")):
            row["path"] = row["path"].removesuffix(", …") + ", …"
        for name in ("max_abs", "relative"):
            row["change"] = {**row["change"], name: max(row["change"][name], item["change"][name])}
    return sorted(groups.values(), key=lambda row: (not row["harmful"], row["op"]))

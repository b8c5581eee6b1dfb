"""What the rules of `ledger_causes` share: what a piece of evidence tells, and how it reads. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from warp_debug_gradients.operations.isolated import launch_alone
from warp_debug_gradients.records import (
    GivenNumber,
    JumpRow,
    Launch,
    Ledger,
    NamedArray,
    NonFiniteRow,
    ObservationRow,
    OverwriteRow,
    Place,
    Summation,
    TermRow,
    WhatIfRow,
    WriterRow,
)
from warp_debug_gradients.render.text import moved_by, percent
from warp_debug_gradients.schemas import Cause, Location, as_float

REPAIRED = 0.1  # restoring the reads must leave at most this part of the error,
REPAIRED_FLOOR = 2e-3  # or a relative error that float32 differences cannot tell from none
SUMS_COUNT = 0.1  # part of what is wrong that round-off of sums must make up to be a cause
OF_SUMS = 1.5  # times their share: the most that one launch line may put in by them (others may cancel some of it)
HOST_WRITES = {"numpy", "assign", "__setitem__"}
MADE_OF_VALUES = {"wp.array", "fill_"}  # what brings numbers from the host, and at times a constant
IN_A_KERNEL = "in a kernel on the tape instead of on the host"
DOUBLES = {
    "duplicate_launch": "Launch it once.",
    "retain_grad": "Drop retain_grad=True, or write the array once only.",
    "tape_reentered": "Use a new tape (or tape.reset()) for each recording.",
}


def repairs(what_if: WhatIfRow | Summation) -> bool:
    """Whether restoring the clobbered reads repairs the gradient."""
    before, after = what_if.get("relative_error_as_is"), what_if.get("relative_error_restored")
    if before is None or after is None:
        return False
    before, after = as_float(before), as_float(after)
    if not math.isfinite(after):
        return False
    if not math.isfinite(before):
        return after <= REPAIRED
    return after < before and after <= max(REPAIRED * before, REPAIRED_FLOOR)


def restored_text(what_if: Mapping[str, Any]) -> str:
    """The what-if in one clause; a change too small to be told by differences is measured against the gradient itself."""
    as_is, restored, fd = (as_float(what_if.get(name)) for name in ("as_is", "restored", "finite_difference"))
    if fd and abs(restored - as_is) < abs(as_is - fd) <= 2 * abs(restored - fd):
        return (
            "with the recorded values restored before each adjoint the derivative changes by "
            f"{percent(abs(restored - as_is) / abs(fd))}, less than what separates it from the differences "
            f"({percent(what_if.get('relative_error_as_is'))} before, {percent(what_if.get('relative_error_restored'))} after)"
        )
    return (
        f"with the recorded values restored before each adjoint the relative error goes from "
        f"{percent(what_if.get('relative_error_as_is'))} to {percent(what_if.get('relative_error_restored'))}"
    )


def summation_share(ledger: Ledger) -> float:
    """The part of the derivative that the round-off of long sums of contributions puts into the gradient; 0 where it is
    not worth a word: less than a tenth of what is wrong.
    """
    found = ledger.get("summation")
    if not found:
        return 0.0
    as_is, apart, fd = (as_float(found.get(name)) for name in ("as_is", "restored", "finite_difference"))
    if not fd or not abs(as_is - apart) >= SUMS_COUNT * abs(as_is - fd):
        return 0.0
    return abs(as_is - apart) / abs(fd)


def summed_text(found: Summation) -> str:
    """The what-if of sums in float64 in one clause."""
    names = ", ".join(variables_of(found["arrays"])) or "an array"
    return (
        f"with the contributions to the gradient of {names} added up in float64 the relative error goes from "
        f"{percent(found.get('relative_error_as_is'))} to {percent(found.get('relative_error_restored'))}"
    )


def explained(ledger: Ledger, jump: JumpRow) -> bool:
    """Whether another rule accounts for an adjoint's jump."""
    if overwritten_read(ledger, jump):
        return True
    share = summation_share(ledger)
    if share and abs(as_float(jump.get("share"))) <= OF_SUMS * share:
        found = ledger.get("summation")
        if found and any(same_line(jump, reader) for reader in found["readers"]):
            return True
    alone = launch_alone(ledger, jump)
    if jump.get("host_values") and (alone or {}).get("verdict") != "wrong":
        return True
    restored = jump.get("share_restored")
    if jump.get("writers") and restored is not None:
        return abs(as_float(restored)) <= 0.5 * abs(as_float(jump.get("share")))
    seen = [o for o in ledger.get("observations") or [] if o.get("kind") in {*DOUBLES, "after_loss"}]
    return disabled_kernel(ledger, jump) or any(tells_of(jump, o) for o in seen)


def overwritten_read(ledger: Ledger, jump: JumpRow) -> bool:
    """Whether a harmful overwrite of what the launch read makes up most of its jump.

    Restoring what it read does not undo a race: its threads have read what others of them wrote.
    """
    restored = jump.get("share_restored")
    repaired = restored is None or abs(as_float(restored)) <= 0.5 * abs(as_float(jump.get("share")))
    rows = [r for r in ledger.get("overwrites") or [] if r.get("harmful") and (repaired or r.get("races"))]
    return any(same_line(jump, row.get("reader") or {}) for row in rows)


def by_host(writer: WriterRow) -> bool:
    what = str(writer.get("what") or "").lower()
    return "numpy" in what or what.removesuffix("()") in HOST_WRITES


def made_of_values(writer: WriterRow) -> bool:
    """Whether an array is made of numbers that the program had on the host."""
    return str(writer.get("what")).removesuffix("()") in MADE_OF_VALUES


def read_text(writer: WriterRow | GivenNumber) -> str:
    """Where the host has read what the tape follows, before it wrote; empty where it was not seen to."""
    read = writer.get("read")
    if not read or not read.get("file"):
        return ""
    name = read.get("variable") or "an array that the tape follows"
    return f"the host reads {name} at {place_text(read)} ({read.get('how')}) while the tape records"


def number_text(given: GivenNumber, kernel: str | None) -> str:
    """A launch argument that follows the parameter, in one clause."""
    plus, minus = (shortened(as_float(given.get(side))) for side in ("plus", "minus"))
    return (
        f"argument {given.get('argument')} of {kernel} is a plain number that follows the parameter: {plus} and {minus} with "
        "it moved one way and the other; no adjoint goes through it"
    )


def significant_jumps(ledger: Ledger, kind: str) -> list[JumpRow]:
    return [j for j in ledger.get("jumps") or [] if j.get("significant") and j.get("kind") == kind]


def disabled_kernel(ledger: Ledger, jump: Launch) -> bool:
    seen = [o for o in ledger.get("observations") or [] if o.get("kind") == "backward_disabled"]
    kernel = jump.get("kernel")
    return any(same_line(jump, o) or (kernel and f"{kernel}" in str(o.get("message"))) for o in seen)


def tells_of(jump: JumpRow, seen: ObservationRow) -> bool:
    """Whether an observation is about a jump: the same line, or operations of an earlier recording."""
    if seen.get("kind") == "tape_reentered":
        return not jump.get("file") or (jump.get("first_op") or 0) < 0
    return same_line(jump, seen)


def same_line(one: Place, other: Place) -> bool:
    return bool(one.get("file")) and (one.get("file"), one.get("line")) == (other.get("file"), other.get("line"))


def new_cause(
    code: str,
    confidence: Any,
    jump: Launch,
    variables: list[str],
    evidence: list[str],
    repair: str,
    where: Place | None = None,
) -> Cause:
    place = where if where and where.get("file") else jump
    return Cause(
        code=code,
        confidence=confidence,
        file=place.get("file"),
        line=place.get("line"),
        via=location(place),
        function=jump.get("function"),
        kernel=jump.get("kernel"),
        variables=variables,
        evidence=evidence,
        repair=repair,
    )


def location(place: Place) -> Location | None:
    """The user's own line that called, where a place lies in a library."""
    called = place.get("via")
    return Location.model_validate(called) if called else None


def merged(causes: Iterable[Cause]) -> list[Cause]:
    """One cause a code and line: later ones add their evidence."""
    kept: dict[tuple[Any, ...], Cause] = {}
    for cause in causes:
        key = (cause.code, cause.file, cause.line)
        if key not in kept:
            kept[key] = cause
        else:
            first = kept[key]
            first.evidence += [e for e in cause.evidence if e not in first.evidence]
            first.variables += [v for v in cause.variables if v not in first.variables]
    return list(kept.values())


def left_over_text(term: TermRow) -> str:
    return (
        f"the gradient of {term.get('variable') or 'an array'} was not zero when backward began: "
        f"{percent(term.get('share'))} of the derivative"
    )


def clobbered_text(row: OverwriteRow) -> str:
    reader, writer, change = row.get("reader") or {}, row.get("writer") or {}, row.get("change") or {}
    relative = change.get("relative")
    moved = f"; its values moved by {moved_by(relative, change.get('max_abs'))}" if relative is not None else ""
    if row.get("how") == "in_kernel":
        return (
            f"kernel {reader.get('kernel')} (launched at {place_text(reader)}) overwrites its own input {row.get('variable')}"
            f"{moved}"
        )
    times = f" ({reads} reads)" if (reads := row.get("ops") or 0) > 1 else ""
    path = f" ({row.get('path')})" if row.get("path") else ""
    return (
        f"{row.get('variable')}{path} is read by {reader.get('kernel') or 'an op'} at {place_text(reader)}{times} and changed by "
        f"{writer.get('what') or 'something'} at {place_text(writer) or 'an unknown place'} before the adjoint reads it{moved}"
    )


def race_text(row: OverwriteRow) -> str:
    """What a launch does to the forward pass that writes an array which its threads read at others' places."""
    reader = row.get("reader") or {}
    return (
        f"the same launch of {reader.get('kernel')} writes {row.get('variable')} while its threads read other elements of it: "
        "where they meet, the order of the threads decides the forward values, so that a repair changes those, too"
    )


def jump_text(jump: JumpRow) -> str:
    ops = f" over {count} ops" if (count := jump.get("ops") or 0) > 1 else ""
    noise = f" (noise {percent(jump.get('noise'))})" if jump.get("noise") is not None else ""
    kernel = f" ({jump.get('kernel')})" if jump.get("kernel") else ""
    return f"{place_text(jump) or 'an op'}{kernel} puts in {percent(jump.get('share'))} of the derivative{ops}{noise}"


def place_text(where: Place) -> str:
    """file:line, and the user's line that called it where it lies in a library or is reached from a tape as well."""
    if not where.get("file"):
        return ""
    caller = where.get("off_tape") or where.get("via")
    called = f" (called from {caller.get('file')}:{caller.get('line')})" if caller else ""
    return f"{where.get('file')}:{where.get('line')}{called}"


def variables_of(rows: Sequence[NamedArray | NonFiniteRow | ObservationRow]) -> list[str]:
    return list(dict.fromkeys(name for r in rows if (name := r.get("variable"))))


def size_of(share: Any) -> float:
    value = abs(as_float(share)) if share is not None else 0.0
    return value if not math.isnan(value) else math.inf


def shortened(value: Any) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 40 else text[:37] + "..."

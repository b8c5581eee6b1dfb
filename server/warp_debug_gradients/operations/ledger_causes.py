"""From a ledger's evidence to causes. Pure: one ledger (a dictionary, as in ledger.json) in, causes out.

Each rule reads one kind of evidence, gives its numbers, and claims no more than they show: `proven` only where the
backward pass, run again with the recorded values restored, comes out right, or where an adjoint is wrong by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from warp_debug_gradients.operations.constructs import REPAIRS, Construct
from warp_debug_gradients.operations.host_places import UnrecordedPlace
from warp_debug_gradients.operations.isolated import functions_alone, launch_alone
from warp_debug_gradients.operations.isolated import in_words as isolated_in_words
from warp_debug_gradients.operations.ledger_evidence import (
    DOUBLES,
    HOST_WRITES,
    IN_A_KERNEL,
    SUMS_COUNT,
    Ledger,
    by_host,
    clobbered_text,
    disabled_kernel,
    explained,
    jump_text,
    left_over_text,
    location,
    made_of_values,
    merged,
    new_cause,
    number_text,
    overwritten_read,
    place_text,
    race_text,
    read_text,
    repairs,
    restored_text,
    same_line,
    shortened,
    significant_jumps,
    size_of,
    summation_share,
    summed_text,
    tells_of,
    variables_of,
)
from warp_debug_gradients.records import (
    AloneRow,
    JumpRow,
    Launch,
    ObservationRow,
    OverwriteRow,
    Place,
    TermRow,
    WriterRow,
)
from warp_debug_gradients.render.text import percent
from warp_debug_gradients.schemas import Cause, as_float
from warp_debug_gradients.versions import known_defects

MOST_CONSTRUCTS = 3
SIGNIFICANT = 4.0  # times its noise: where a jump begins to count (probe/ledger.py)
SUMS_SHARE = 1e-3  # of the derivative that round-off of sums must put in to be a cause
MOST_VICTIMS = 3
HANDED_ON = 3.0  # times the whole's relative error: what enters one tape of several, and is more, another takes on
ONLY_NONFINITE = ("where_overflow", "singular_point")  # constructs that explain a non-finite adjoint, not a wrong one
RECORDED_FUNCTION = "recorded function"  # what the probe calls an operation recorded with tape.record_func
COPY = "array copy"  # ... and wp.copy, clone, assign
CLEARS = {"zero_", "fill_"}
RESETS = {"zero_", "fill_", "assign"}

HELD = (
    "its values are computed while no tape records, and backward holds them constant: an implicit adjoint or a surrogate "
    "loss does that on purpose, and then the total derivative of this loss is not what is wanted"
)

SCOPES = {
    "tape_left_open": "Open the tape anew for each iteration: leave the `with` block before backward, and update outside of it.",
    "after_loss": "End the `with` block after the loss: record nothing else.",
}

FindConstructs = Callable[[Launch], list[Construct]]


@dataclass(frozen=True)
class Context:
    """What is known besides the ledger.

    tape, backward: where the tape starts, and where its backward is called. cut: where the chain is cut if it is.
    inside: whether the tape's own window has the whole derivative (then nothing before the tape is missing);
        None where it was not measured.
    unrecorded: the place of the statement that writes a variable and that the tape does not record, with
        "host": whether NumPy takes part; None where none is found.
    swap: the place of the statement by which the arrays of a launch take turns; None where there is none.
    verdict: of the check of the whole gradient; None where none was made.
    windows: backward calls of the iteration. Where there are several, a state that a tape copies in is the end of another.
    parted: whether each of them is right by itself and their sum is not: the chain is cut between them.
    warp: the version of Warp.
    same_tape: whether the iteration calls backward on one tape more than once.
    seeded: where arrays were made whose gradient holds, before backward, the adjoint that the tape is handed.
    cut_before: whether an adjoint is dropped on the way to this tape.
    error: relative error of the whole gradient, over all backward calls; None where it was not measured.
    """

    tape: Place | None = None
    backward: Place | None = None
    inside: bool | None = None
    unrecorded: Callable[[str], UnrecordedPlace | None] = lambda variable: None
    verdict: str | None = None
    windows: int = 1
    parted: bool = False
    warp: str | None = None
    same_tape: bool = False
    error: float | None = None
    cut: Place | None = None
    cut_before: bool = False
    seeded: Sequence[Place] = ()
    swap: Callable[[Place], Place | None] = lambda place: None


def ledger_causes(
    ledger: Ledger, find_constructs: FindConstructs | None = None, context: Context | None = None
) -> list[Cause]:
    """Causes, the best supported and largest first. `find_constructs` lists the suspicious ones of a jump's kernel."""
    context = context or Context()
    found: list[tuple[float, Cause]] = []
    found += _overwrites(ledger, find_constructs, context)
    for rule in (_unrecorded, _lost, _disabled, _numbers, _summed):
        found += rule(ledger)
    for contextual in (_rough, _double_counts, _tape_scope, _seed, _stale, _truncated):
        found += contextual(ledger, context)
    found += _nonfinite(ledger, find_constructs, context)
    if not ledger.get("nonfinite"):
        found += _kernels(ledger, find_constructs, context)
    found += _custom_gradients(ledger, context, [cause for _, cause in found])
    order = {"proven": 0, "likely": 1, "possible": 2}
    found.sort(key=lambda item: (order[item[1].confidence], -item[0]))
    return merged(cause for _, cause in found)


# -- one rule a kind of evidence ------------------------------------------------------------------------------------


def _overwrites(ledger: Ledger, find_constructs: FindConstructs | None, context: Context) -> list[tuple[float, Cause]]:
    """Values that the adjoint needed were changed. Restoring them and getting FD is the proof."""
    groups: dict[tuple[Any, ...], list[OverwriteRow]] = {}
    for row in ledger.get("overwrites") or []:
        if row.get("harmful"):
            writer = row.get("writer") or {}
            key = (writer.get("file"), writer.get("line"), repr(writer.get("off_tape")), row.get("how"))
            groups.setdefault(key, []).append(row)
    return [_overwritten(ledger, rows, find_constructs, context) for rows in groups.values()]


def _overwritten(
    ledger: Ledger, rows: list[OverwriteRow], find_constructs: FindConstructs | None, context: Context
) -> tuple[float, Cause]:
    """One writing line and all that it spoils, the farthest moved first."""
    rows = sorted(rows, key=lambda r: -size_of((r.get("change") or {}).get("relative")))
    row, names = rows[0], variables_of(rows)
    reader, writer = row.get("reader") or {}, row.get("writer") or {}
    what_if = ledger.get("what_if") or {}
    evidence = [clobbered_text(r) for r in rows[:MOST_VICTIMS]]
    evidence += [race_text(r) for r in rows if r.get("races")][:1]
    readers = [r.get("reader") or {} for r in rows]
    jumps = [j for j in significant_jumps(ledger, "adjoint") if any(same_line(j, r) for r in readers)]
    evidence += [jump_text(j) for j in jumps[:1]]
    alone = launch_alone(ledger, reader) if row.get("how") == "in_kernel" else None
    if alone:
        evidence.append(isolated_in_words(alone))
    own = alone is not None and alone.get("verdict") == "wrong" and alone.get("restored") == "right"
    if alone and alone.get("verdict") == "wrong" and any(r.get("races") for r in rows):
        # Restored inputs do not undo a race; it is the reason if nothing else in the kernel can be.
        own = not [c for c in (find_constructs(reader) if find_constructs else []) if c.code not in ONLY_NONFINITE]
    if what_if:
        evidence.append(restored_text(what_if))
    listed = ", ".join(names[:3]) or "the array"
    place = writer.get("off_tape") or (writer if writer.get("file") else reader)
    code = "overwrite"
    repair = f"Give each step its own array for {listed} (a list of arrays), or write to another array."
    swapped = context.swap(place) if row.get("how") != "in_kernel" and writer.get("file") else None
    scaled = _scaled_in_place(row, find_constructs)
    late = _recorded_late(ledger, writer)
    if late:
        code, repair = "tape_scope", f"{SCOPES['after_loss']} What this line does, do after backward."
        evidence.append(str(late.get("message")))
    elif scaled:
        code, place, repair = scaled.code, scaled.place, REPAIRS[scaled.code]
        evidence.append(f"{scaled.file}:{scaled.line}: {scaled.text}")
    elif row.get("how") == "in_kernel":
        repair = "Write the result to another array than the one the kernel reads."
    elif swapped:
        evidence.append(f"by the swap at {place_text(swapped)} the next round writes what this one has read")
        place, repair = (
            swapped,
            f"Give each step its own array for {listed} (a list of arrays) instead of swapping them.",
        )
    elif str(writer.get("what")).removesuffix("()") in RESETS:
        repair = f"Do not reset {listed} before backward: use a fresh array for each step."
    cause = Cause(
        code=code,
        confidence="proven" if repairs(what_if) or own else "likely",
        file=place.get("file"),
        line=place.get("line"),
        via=location(place),
        function=jumps[0].get("function") if jumps else None,
        kernel=reader.get("kernel"),
        variables=names,
        evidence=evidence,
        repair=repair,
    )
    return max((size_of(j.get("share")) for j in jumps), default=0.0), cause


def _recorded_late(ledger: Ledger, writer: WriterRow) -> ObservationRow | None:
    """The observation that the overwriting launch is on the tape behind the loss."""
    seen = [o for o in ledger.get("observations") or [] if o.get("kind") == "after_loss"]
    return next((o for o in seen if same_line(writer, o)), None)


def _scaled_in_place(row: OverwriteRow, find_constructs: FindConstructs | None) -> Construct | None:
    """The `*=` by which a kernel overwrites its own input, if it is one."""
    if row.get("how") != "in_kernel" or not find_constructs:
        return None
    constructs = [c for c in find_constructs(row.get("reader") or {}) if c.code == "inplace_muldiv"]
    return next((c for c in constructs if c.variable == row.get("argument")), None)


def _unrecorded(ledger: Ledger) -> list[tuple[float, Cause]]:
    """A write that the tape does not know of: the adjoint passes through it as if it had not happened."""
    found: list[tuple[float, Cause]] = []
    for jump in significant_jumps(ledger, "unrecorded"):
        writer = _telling(jump)
        what = writer.get("what") or ""
        kind = "numpy" if "numpy" in what.lower() else what.removesuffix("()")
        variables = variables_of(jump.get("lost") or [])
        name = variables[0] if variables else "the array"
        if kind in ("zero_", "fill_") or (kind == "assign" and not jump.get("lost")):
            code = "accumulator_reset"
            repair = f"Use a fresh array for each step instead of resetting {name}, or clear it with a kernel."
        elif kind in HOST_WRITES and size_of(jump.get("replaced")) > size_of(jump.get("carried")):
            code = "overwrite"  # what it replaces counts for more than what it brings
            repair = f"Write {name} with a kernel on the tape instead of NumPy, or inside the kernel that makes it."
        elif kind in HOST_WRITES:
            code = "host_round_trip"
            repair = "Compute this with a kernel on the tape instead of NumPy."
        else:
            code = "unrecorded_operation"
            repair = "Record this write on the tape: launch it inside the `with` block, as a kernel or wp.copy."
        evidence = [
            f"{what or 'a write'} at {place_text(writer) or place_text(jump)} is not on the tape",
            jump_text(jump),
        ]
        if jump.get("carried") is not None:
            evidence.append(
                f"the values it writes carry {percent(jump.get('carried'))} of the derivative, and the adjoint takes "
                f"{percent(jump.get('replaced'))} on to the values that it replaced"
            )
        found.append((size_of(jump.get("share")), new_cause(code, "likely", jump, variables, evidence, repair, writer)))
    return found


def _telling(jump: JumpRow) -> WriterRow:
    """Of several unrecorded writes the last that brings values: a new array is cleared before a launch fills it."""
    writers = jump.get("writers") or [{}]
    filled = [w for w in writers if str(w.get("what")).removesuffix("()") not in CLEARS]
    return filled[-1] if filled and size_of(jump.get("carried")) >= size_of(jump.get("replaced")) else writers[0]


def _lost(ledger: Ledger) -> list[tuple[float, Cause]]:
    """The derivative ran into an array that has nowhere to put its adjoint."""
    found: list[tuple[float, Cause]] = []
    for jump in significant_jumps(ledger, "lost"):
        arrays = jump.get("lost") or []
        writers = jump.get("writers") or []
        variables = variables_of(arrays)
        names = ", ".join(variables) or "an array"
        host = next(
            (w for w in (*writers, *(a.get("writer") or {} for a in arrays)) if by_host(w) or made_of_values(w)), None
        )
        evidence = [f"{names} carries the derivative but has no gradient buffer", jump_text(jump)]
        if disabled_kernel(ledger, jump):
            code, repair = "backward_disabled", "Enable the backward pass of this kernel (enable_backward=True)."
            evidence[0] = f"kernel {jump.get('kernel')} has its backward pass disabled"
        elif host:
            code, repair = "host_round_trip", f"Make {names} {IN_A_KERNEL}."
            evidence.append(f"its values are written by {host.get('what')} at {place_text(host)}")
            evidence += [text] if (text := read_text(host)) else []
        else:
            code, repair = (
                "missing_requires_grad",
                f"Allocate {names} with requires_grad=True, before views or structs.",
            )
        held = code == "missing_requires_grad" and bool(arrays) and all(a.get("off_tape") for a in arrays)
        if held:
            evidence.append(HELD)
            repair = (
                f"If it is not meant: {repair[0].lower()}{repair[1:]} And compute its values inside the `with` block."
            )
        where = (arrays[0].get("allocated") if arrays and code == "missing_requires_grad" else host) or {}
        share = size_of(jump.get("share"))
        sure = "possible" if held else "likely"
        found.append((share, new_cause(code, sure, jump, variables, evidence, repair, where)))
    return found


def _disabled(ledger: Ledger) -> list[tuple[float, Cause]]:
    """A kernel without a backward pass on the path, where its own line jumps."""
    found: list[tuple[float, Cause]] = []
    for jump in significant_jumps(ledger, "adjoint"):
        if disabled_kernel(ledger, jump):
            evidence = [f"kernel {jump.get('kernel')} has its backward pass disabled", jump_text(jump)]
            repair = "Enable the backward pass (enable_backward=True on the kernel, its module and wp.config)."
            found.append(
                (size_of(jump.get("share")), new_cause("backward_disabled", "proven", jump, [], evidence, repair))
            )
    return found


def _numbers(ledger: Ledger) -> list[tuple[float, Cause]]:
    """A plain number that a launch is given and that follows the parameter: the host has computed it."""
    found: list[tuple[float, Cause]] = []
    for jump in significant_jumps(ledger, "adjoint"):
        given = jump.get("host_values") or []
        if not given:
            continue
        read = next((g.get("read") for g in given if g.get("read")), None) or {}
        evidence = [jump_text(jump), *(number_text(g, jump.get("kernel")) for g in given[:MOST_VICTIMS])]
        evidence += list(dict.fromkeys(text for g in given if (text := read_text(g))))
        names = [str(g.get("argument")) for g in given]
        repair = f"Compute {', '.join(names)} {IN_A_KERNEL}, and hand it over in an array."
        cause = new_cause("host_round_trip", "likely", jump, names, evidence, repair, read)
        found.append((size_of(jump.get("share")), cause))
    return found


def _summed(ledger: Ledger) -> list[tuple[float, Cause]]:
    """Round-off of long sums: every adjoint is right, and what they add up to is not."""
    share, found = summation_share(ledger), ledger.get("summation")
    if not found or share < SUMS_SHARE:
        return []
    where = found["readers"][0]
    names = variables_of(found["arrays"])
    listed = ", ".join(names) or "it"
    evidence = [summed_text(found), "float32 loses what is added to a sum that is 1e7 times larger"]
    repair = (
        f"Make {listed} (and so its gradient) float64, or let each launch read a copy of its own (wp.copy on the tape), "
        "or one copy for every few thousand threads, so that no sum is long."
    )
    confidence = "proven" if repairs(found) else "likely"
    return [(share, new_cause("precision_floor", confidence, where, names, evidence, repair))]


def _rough(ledger: Ledger, context: Context) -> list[tuple[float, Cause]]:
    """A launch whose jump is what the round-off of its own adjoint's sums is: every contribution is right."""
    if context.verdict == "agree":
        return []
    found: list[tuple[float, Cause]] = []
    fd, ad = as_float(ledger.get("finite_difference")), as_float(ledger.get("autodiff"))
    for jump in ledger.get("jumps") or []:
        alone, share = launch_alone(ledger, jump), size_of(jump.get("share"))
        if alone is None or jump.get("significant") or share < SUMS_SHARE or not fd:
            continue
        noise = as_float(alone.get("sum_noise") or 0.0) / abs(fd)
        if noise * SIGNIFICANT < share or share < SUMS_COUNT * abs(ad - fd) / abs(fd):
            continue
        evidence = [
            f"the sums in the adjoint of {jump.get('kernel')} are off by some {percent(noise)} of the derivative: measured by "
            "the same adjoint at eight other scales of what arrives, where only the rounding differs",
            jump_text(jump),
            "float32 rounds what is added to the last digit of the sum; equal terms are rounded alike",
        ]
        names = [str(alone.get("argument"))] if alone.get("argument") else []
        repair = (
            f"Make what {jump.get('kernel')} reads for all threads (and so its gradient) float64, or let every few thousand "
            "threads read a copy of their own (wp.copy on the tape), so that no sum is long."
        )
        found.append((share, new_cause("precision_floor", "likely", jump, names, evidence, repair)))
    return found


def _double_counts(ledger: Ledger, context: Context) -> list[tuple[float, Cause]]:
    """The same contribution twice: only where a jump at the place of the observation shows it."""
    found: list[tuple[float, Cause]] = []
    for seen in ledger.get("observations") or []:
        kind = seen.get("kind")
        if kind not in DOUBLES:
            continue
        jump = next((j for j in significant_jumps(ledger, "adjoint") if tells_of(j, seen)), None)
        if jump is None:
            continue
        evidence = [str(seen.get("message")), jump_text(jump)]
        variables = variables_of([seen])
        where = (context.tape or context.backward or {}) if kind == "tape_reentered" else seen
        cause = new_cause("double_count", "likely", jump, variables, evidence, DOUBLES[kind], where)
        found.append((size_of(jump.get("share")), cause))
    return found


def _tape_scope(ledger: Ledger, context: Context) -> list[tuple[float, Cause]]:
    """What is on the tape and no part of the forward pass, where it puts something into the gradient."""
    found: list[tuple[float, Cause]] = []
    for seen in ledger.get("observations") or []:
        if seen.get("kind") == "after_loss":
            jumps = [
                j
                for j in significant_jumps(ledger, "adjoint")
                if same_line(j, seen) and not overwritten_read(ledger, j)
            ]
            evidence, where = [jump_text(j) for j in jumps[:1]], seen
        elif seen.get("kind") == "tape_left_open":
            jumps = significant_jumps(ledger, "adjoint")
            left_over = [t for t in ledger.get("stale") or [] if t.get("significant")]
            evidence = [*map(jump_text, jumps), *map(left_over_text, left_over)][:2]
            where = context.tape or context.backward or {}
        else:
            continue
        if evidence:
            evidence.insert(0, str(seen.get("message")))
            cause = new_cause(
                "tape_scope", "likely", jumps[0] if jumps else {}, [], evidence, SCOPES[seen["kind"]], where
            )
            found.append((math.inf, cause))  # what it spoils are its symptoms
    return found


def _seed(ledger: Ledger, context: Context) -> list[tuple[float, Cause]]:
    """What backward starts with is not the derivative of the objective."""
    spent = next((o for o in ledger.get("observations") or [] if o.get("kind") == "seed_spent"), None)
    backward = context.backward or {}
    if spent:
        repair = "Fill the seed array again before each backward (or hand over a fresh one)."
        return [(math.inf, new_cause("seed_mismatch", "likely", {}, [], [str(spent.get("message"))], repair, backward))]
    term = ledger.get("seed") or {}
    if not term.get("significant") or context.cut_before:
        return []
    evidence = [f"what backward is started with misses the objective's derivative by {percent(term.get('share'))}"]
    objective = str((ledger.get("objective") or {}).get("name") or "")
    seen: WriterRow = term.get("writer") or {}  # measured; what the source shows is only asked where nothing was seen
    writer = seen or (context.unrecorded(objective) if objective else None)
    if writer:
        code, repair = "unrecorded_operation", f"Record the operation that makes {objective or 'the loss'} on the tape."
        by = f" by {seen.get('what')}" if seen else ""
        evidence.append(f"{objective or 'it'} is written{by} at {place_text(writer)}, which the tape does not record")
        return [(size_of(term.get("share")), new_cause(code, "likely", {}, [objective], evidence, repair, writer))]
    repair = "Seed backward with the gradient of the objective itself (a fresh array of ones for a scalar loss)."
    return [(size_of(term.get("share")), new_cause("seed_mismatch", "likely", {}, [], evidence, repair, backward))]


def _stale(ledger: Ledger, context: Context) -> list[tuple[float, Cause]]:
    terms = [t for t in ledger.get("stale") or [] if t.get("significant")]
    terms = [t for t in terms if not any(same_line(t.get("allocated") or {}, place) for place in context.seeded)]
    if not terms:
        return []
    names = variables_of(terms)
    share = math.fsum(as_float(t.get("share")) for t in terms if t.get("share") is not None)
    evidence = [left_over_text(t) for t in terms]
    code, listed = "stale_gradient", ", ".join(names[:4])
    repair = f"Zero the gradient{'s' if len(names) > 1 else ''} of {listed} before each backward "
    repair += "(tape.zero() after the update)."
    if context.same_tape:
        code = "double_count"
        evidence.append("the iteration calls backward on this tape more than once: the earlier call left it there")
        repair = f"Zero {listed} between the backward calls, or call backward once, on the sum of the losses."
    where = context.backward or terms[0].get("allocated") or {}
    return [(size_of(share), new_cause(code, "likely", {}, names, evidence, repair, where))]


def _truncated(ledger: Ledger, context: Context) -> list[tuple[float, Cause]]:
    """A derivative that comes in from outside the record: from before the tape, or past it."""
    if context.windows > 1 and context.verdict == "agree":
        return []  # the tapes of the iteration hand it on to each other
    terms = [t for t in ledger.get("truncated") or [] if t.get("significant")]
    if is_handed_on(terms, context.windows, context.error):
        return []
    found: list[tuple[float, Cause]] = []
    before: list[TermRow] = []
    for term in terms:
        name = term.get("variable") or "an array"
        filled = term.get("writer") or {}  # measured; what the source shows is only asked where nothing was seen
        writer = filled or context.unrecorded(name) or {}
        copied = "copy" in str(filled.get("what"))
        of_values, read = made_of_values(filled), read_text(filled)
        unsaid = not filled or (of_values and not read)  # its values may come from before the tape
        loaded = context.windows > 1 and (copied or (context.parted and unsaid))  # a segment's initial state
        if loaded or (context.inside is not True and (not writer or (of_values and not read))):
            before.append(term)
            continue
        made = _made_inside(term, context)
        where = writer or (made or {})
        host = by_host(filled) or of_values if filled else bool(writer.get("host"))
        by = f" by {filled.get('what')}" if filled else ""
        at = f" (made{by} at {place_text(where)})" if where else ""
        missing = ", and nothing before the tape is missing" if context.inside else ""
        evidence = [
            f"{name}{at} brings {percent(term.get('share'))} of the derivative that no recorded operation put there{missing}"
        ]
        evidence += [read] if host and read else []
        repair = (
            f"Make {name} {IN_A_KERNEL}." if host else f"Make {name} by a kernel or wp.copy inside the `with` block."
        )
        code = "host_round_trip" if host else "unrecorded_operation"
        cause = new_cause(code, "likely", {}, variables_of([term]), evidence, repair, where or context.tape or {})
        found.append((size_of(term.get("share")), cause))
    if before:
        share = math.fsum(as_float(t.get("share")) for t in before if t.get("share") is not None)
        names = ", ".join(variables_of(before)) or "state"
        evidence = [
            f"{names} bring a derivative into the tape that backward never follows: {percent(abs(share))} of the whole"
        ]
        repair = (
            "Let one tape span the whole iteration, or hand the adjoint of the tape's initial state to the tape before."
        )
        where = context.cut or context.tape or before[0].get("allocated") or {}
        found.append((abs(share), new_cause("truncation", "likely", {}, variables_of(before), evidence, repair, where)))
    return found


def is_handed_on(terms: Sequence[TermRow], windows: int, error: float | None) -> bool:
    """Whether what enters one tape of several cannot be missing from the whole: far more than the whole is off by."""
    share = abs(math.fsum(as_float(t.get("share")) for t in terms if t.get("share") is not None))
    return windows > 1 and error is not None and share > HANDED_ON * error


def _made_inside(term: TermRow, context: Context) -> Place | None:
    """The array's allocation, if it lies between the tape's start and its backward call."""
    made, tape, backward = term.get("allocated") or {}, context.tape or {}, context.backward or {}
    files = {made.get("file"), tape.get("file"), backward.get("file")}
    lines = (tape.get("line"), made.get("line"), backward.get("line"))
    if len(files) > 1 or None in files:
        return None
    first, line, last = (-1 if number is None else int(number) for number in lines)
    return made if 0 <= first < line < last else None


def _nonfinite(ledger: Ledger, find_constructs: FindConstructs | None, context: Context) -> list[tuple[float, Cause]]:
    """An adjoint that is not finite; no more than possible where the gradient is right all the same."""
    born = ledger.get("nonfinite")
    if not born:
        return []
    constructs = find_constructs(born) if find_constructs else []
    branch = next((c for code in ONLY_NONFINITE for c in constructs if c.code == code), None)
    code = branch.code if branch else "singular_point"
    elements = ", ".join(str(e) for e in (born.get("elements") or [])[:4]) or "?"
    evidence = [
        f"the adjoint of {born.get('kernel') or 'an op'} (op {born.get('op')}) makes non-finite values for "
        f"{born.get('variable') or '?'} at {elements} from finite ones"
    ]
    inputs = born.get("inputs") or {}
    if inputs:
        evidence.append("inputs there: " + ", ".join(f"{k} = {shortened(v)}" for k, v in list(inputs.items())[:4]))
    if branch:
        evidence.append(f"{branch.file}:{branch.line}: {branch.text}")
    where = branch.place if branch else born
    sure = "possible" if context.verdict == "agree" else "likely"
    return [(math.inf, new_cause(code, sure, born, variables_of([born]), evidence, REPAIRS[code], where))]


def _kernels(ledger: Ledger, find_constructs: FindConstructs | None, context: Context) -> list[tuple[float, Cause]]:
    """A jump with intact inputs: the adjoint of that kernel itself is wrong. What is in it narrows down why, and the
    launch by itself proves or clears it."""
    found: list[tuple[float, Cause]] = []
    for jump in significant_jumps(ledger, "adjoint"):
        if explained(ledger, jump):
            continue
        evidence = [jump_text(jump)]
        if jump.get("share_restored") is not None and jump.get("writers"):
            evidence.append(f"with clobbered reads restored it is still {percent(jump.get('share_restored'))}")
        else:
            evidence.append("what its adjoint read was intact")
        constructs = [c for c in (find_constructs(jump) if find_constructs else []) if c.code not in ONLY_NONFINITE]
        alone = launch_alone(ledger, jump)
        verdict = alone.get("verdict") if alone else None
        if alone:
            evidence.append(isolated_in_words(alone))
        custom = [c for c in constructs if c.code == "custom_gradient"]
        functions = [r for r in functions_alone(ledger, "wrong") if any(is_of(c, r) for c in custom)]
        cleared = [r for r in functions_alone(ledger, "right") if any(is_of(c, r) for c in custom)]
        right = [c for c in custom if any(is_of(c, r) for r in cleared)]
        if functions and verdict != "right":  # the formula is wrong by itself: nothing else is needed
            constructs = custom
            evidence += [isolated_in_words(r) for r in functions]
        elif 0 < len(right) < len(constructs):  # the formula is right by itself: what else is in the kernel comes first
            constructs = [*(c for c in constructs if c not in right), *right]
            evidence += [isolated_in_words(r) for r in cleared]
        else:
            right = []
        suspects = len([c for c in constructs if c not in right])
        share = size_of(jump.get("share"))
        for position, construct in enumerate(constructs[:MOST_CONSTRUCTS]):
            hidden = construct.code == "native_without_adjoint"  # may lead to arrays that are no arguments
            cause = new_cause(
                construct.code,
                "possible" if construct in right else _confidence(None if hidden else verdict, suspects, position),
                jump,
                [construct.variable] if construct.variable else [],
                [*evidence, f"{construct.file}:{construct.line}: {construct.text}"],
                REPAIRS[construct.code],
                construct.place,
            )
            found.append((share / (position + 1), cause))
        if jump.get("kernel") == RECORDED_FUNCTION:
            evidence.append("its adjoint is the function given to tape.record_func")
            repair = "Correct that function: it adds the adjoint of what ran here to the gradients of its inputs."
            found.append((share, new_cause("custom_gradient", "likely", jump, [], evidence, repair)))
        elif jump.get("kernel") == COPY:
            known = known_defects(context.warp, of="copy")
            sure = "likely" if known else "possible"
            found.append((share, new_cause("warp_defect", sure, jump, [], [*evidence, *known], REPAIRS["copy"])))
        elif not constructs and verdict == "wrong" and (racing := _races_at(ledger, jump)):
            found.append(_overwritten(ledger, racing, find_constructs, context))
        elif not constructs:
            evidence.append("no construct known to break an adjoint was found in its source")
            evidence += known_defects(context.warp, of="kernel")
            sure = "likely" if verdict == "wrong" else "possible"
            found.append((share, new_cause("warp_defect", sure, jump, [], evidence, REPAIRS["warp_defect"])))
    return found


def _races_at(ledger: Ledger, jump: JumpRow) -> list[OverwriteRow]:
    """The arrays that the launch's threads read where others of them write. No such value need enter its adjoint, which
    knows nothing of the race and may be wrong all the same."""
    rows = ledger.get("overwrites") or []
    return [row for row in rows if row.get("races") and same_line(jump, row.get("reader") or {})]


def is_of(construct: Construct, function: AloneRow) -> bool:
    """Whether the construct is that function's custom gradient."""
    return construct.text.startswith(f"custom gradient of {function.get('kernel')}:")


def _confidence(alone: str | None, constructs: int, position: int) -> str:
    """Of one construct among several: proven where the kernel is wrong by itself and nothing else in it can be it."""
    if alone == "right":
        return "possible"
    if alone == "wrong":
        return "proven" if constructs == 1 else "likely" if position == 0 else "possible"
    return "likely" if constructs == 1 else "possible"


def _custom_gradients(ledger: Ledger, context: Context, known: list[Cause]) -> list[tuple[float, Cause]]:
    """A custom gradient that is wrong by itself, though no launch jumps: the objective's differences may be dead.

    Where the whole gradient agrees it is none: the run does not reach those arguments, or it was meant so.
    """
    if context.verdict == "agree" or any(cause.code == "custom_gradient" for cause in known):
        return []
    found: list[tuple[float, Cause]] = []
    for row in functions_alone(ledger, "wrong"):
        evidence = [isolated_in_words(row)]
        found.append((0.0, new_cause("custom_gradient", "possible", row, [], evidence, REPAIRS["custom_gradient"])))
    return found

"""The operations of a stretch once more: what each of them left behind, from the ends that a run has recorded.

The unperturbed run stands at its backward call, with the whole tape in hand. Of a stretch that puts an error in, the
contents at its start are known of all three runs; launched again from there, its operations leave what they left in that
run, and can be recorded singly. It costs a stretch, where a second round of runs costs the program three times. Nobody
has to believe it: what the last operation leaves has to be, bit for bit, what the run recorded at the stretch's end.
Where it is not (host code took part, an untaped write), nothing is said, and the caller runs the program again.
"""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Sequence

import numpy as np

from .arrays import quiet
from .cuts import Cuts, Part, first_touched
from .recorded import Operation, Recording, Write, parts_of
from .recording import Recorder
from .shadows import BEFORE, WRITTEN, Arena, Change, Shadows, memory
from .tapes import recorded_arrays

ZERO = "zero_()"  # the only untaped write whose effect its record tells
TWICE_KEPT = 1.25  # of its budget: the start of a stretch is in the arena already
State = dict[str, Any]  # of a run's shadows, see Shadows.state


class NotReplayed(Exception):
    """Why a stretch could not be made again."""


def replay(recorder: Recorder, cuts: Cuts, stretches: Sequence[range], arena: Arena, state: State) -> State:
    """The run's state with the operations of `stretches` recorded singly; raises NotReplayed. In a child that ends soon.

    cuts: as the run was recorded. Changes the arrays' memory; adds to the arena, which other processes share.
    """
    first = first_touched(cuts.stretches, recorder.recording.operations, recorder.recording.missed)
    writes = _writes(recorder.recording, stretches)
    for stretch in sorted(stretches, key=lambda s: -s.start):
        operations = recorder.recording.within(stretch)
        with quiet():
            made = _again(recorder, cuts, stretch, operations, set(first.get(stretch.start, ())), writes, arena, state)
        state = spliced(state, made, stretch, _left_alone(cuts, stretch, operations), recorder.end)
    return state


def obstacle(recorder: Recorder, stretches: Sequence[range]) -> str | None:
    """What the tape alone cannot make again; None where it can be tried."""
    recording = recorder.recording
    if recording.missed:
        return "operations of an earlier recording"
    for writes in _writes(recording, stretches).values():
        other = next((w for w in writes if w.what != ZERO), None)
        if other is not None:
            return f"{other.what} between two operations"
    entries = [recording.tape.launches[op] for stretch in stretches for op in stretch]
    return "a recorded function" if any(callable(e) and _copied(e) is None for e in entries) else None


def _writes(recording: Recording, stretches: Sequence[range]) -> dict[int, list[Write]]:
    """The untaped writes inside the stretches into what the tape had met by then, by the next operation.

    An array's first content is none: whether it was zero is known (`Recorder.blank`).
    """
    met: dict[int, tuple[int, Any]] = {}
    for operation in recording.operations:
        for access in operation.accesses:
            met.setdefault(access.number, (operation.index, access.base))
    found: dict[int, list[Write]] = {}
    for stretch in stretches:
        numbers = {a.number for o in recording.within(stretch) for a in o.accesses}
        used = [met[number] for number in numbers]
        for write in recording.writes:
            low, high = write.span
            inside = stretch.start < write.before_op < stretch.stop
            if inside and any(op < write.before_op and b.ptr < high and low < b.ptr + b.capacity for op, b in used):
                found.setdefault(write.before_op, []).append(write)
    return found


def _again(
    recorder: Recorder,
    cuts: Cuts,
    stretch: range,
    operations: list[Operation],
    first: set[Part],
    writes: dict[int, list[Write]],
    arena: Arena,
    state: State,
) -> State:
    """The stretch alone, recorded singly from its start on, in the arena behind what is there."""
    run = Shadows.from_state(arena, state)
    for position in sorted({(c.op, c.phase) for c in run.log}, reverse=True):
        if position > (stretch.stop - 1, WRITTEN):
            run.undo(*position)
    bases = {a.number: a.base for o in operations for a in o.accesses}
    if not all(base.device.is_cpu for base in bases.values()):
        raise NotReplayed("memory of another device")
    ends = {
        part: run.bytes[part[0]][part[1] : part[2]].copy()
        for part in parts_of(p for o in operations for p in o.parts)
        if part[0] in run.bytes and cuts.outlives(part, stretch)
    }
    run.undo(stretch.start, WRITTEN)
    for part in parts_of(p for o in operations for p in o.parts):
        number, low, high = part
        live = memory(bases[number])[low:high]
        if part in first and recorder.blank.get(part):
            live[:] = 0
        elif number in run.bytes:
            live[:] = run.bytes[number][low:high]
    arena.resume(state["used"], state["held"])
    arena.limit = int(TWICE_KEPT * arena.limit)
    inner = Shadows(arena)
    for operation in operations:
        for write in writes.get(operation.index, ()):
            ctypes.memset(write.span[0], 0, write.span[1] - write.span[0])
        for access in operation.accesses:
            if access.low < access.high:
                inner.sync(access.number, access.base, operation.index, BEFORE, access.low, access.high)
        _make(recorder, recorder.recording.tape.launches[operation.index])
        for access in operation.accesses:
            if access.written and access.low < access.high:
                inner.sync(access.number, access.base, operation.index, WRITTEN, access.low, access.high)
    for (number, low, high), there in ends.items():
        if not np.array_equal(memory(bases[number])[low:high], there):
            raise NotReplayed("the stretch does not end as it was recorded")
    return inner.state()


def _make(recorder: Recorder, entry: Any) -> None:
    """One entry of the tape, executed again."""
    if callable(entry):
        dest, src, options = _copied(entry) or (None, None, {})
        recorder.wp.copy(dest, src, **options)
        return
    kernel, dim, max_blocks, inputs, outputs, device, block_dim = entry[:7]
    options = {"device": device, "max_blocks": max_blocks, "block_dim": block_dim, "record_tape": False}
    recorder.wp.launch(kernel, dim=dim, inputs=inputs, outputs=outputs or [], **options)


def _copied(function: Callable[..., Any]) -> tuple[Any, Any, dict[str, Any]] | None:
    """(dest, src, options) of one of Warp's own copies."""
    listed = recorded_arrays(function, ())
    if len(listed) != 2:
        return None
    names = function.__code__.co_freevars
    cells = dict(zip(names, (c.cell_contents for c in function.__closure__ or ()), strict=True))
    wanted = ("dest_offset", "src_offset", "count")
    return cells["dest"], cells["src"], {name: cells[name] for name in wanted if name in cells}


def _left_alone(cuts: Cuts, stretch: range, operations: list[Operation]) -> list[Part]:
    """What the run has not recorded at the stretch's end: nobody touches it later."""
    return [p for p in parts_of(p for o in operations for p in o.parts) if not cuts.outlives(p, stretch)]


def spliced(run: State, made: State, stretch: range, left: list[Part], end: int) -> State:
    """The run's state with those of a stretch in place of what it left at its end. Pure.

    left: parts that only the stretch knows at its end; going back over the operation behind it (end: the position behind
    the last one) puts them there.
    """
    before = [c for c in run["log"] if (c.op, c.phase) < (stretch.start, WRITTEN)]
    behind = [c for c in run["log"] if c.op >= stretch.stop]
    gap = sum((c.op, c.phase) == (stretch.stop, BEFORE) for c in behind)
    phase = WRITTEN if stretch.stop < end else BEFORE
    known = [(n, low, high) for n, low, high in left if n in run["place"] and n in made["place"]]
    bridge = [Change(stretch.stop, phase, n, low, high, made["place"][n][0] + low) for n, low, high in known]
    earlier = {n: op for n, op in run["first_touch"].items() if op < stretch.start}
    return {
        "place": {**made["place"], **run["place"]},
        "log": [*before, *made["log"], *behind[:gap], *bridge, *behind[gap:]],
        "first_touch": {**run["first_touch"], **made["first_touch"], **earlier},
        "used": made["used"],
        "held": made["held"],
    }

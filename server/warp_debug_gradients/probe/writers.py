"""Who wrote: the operation, the call outside the tape or the NumPy view behind a change of memory, by place."""

from __future__ import annotations

from typing import Any

from . import names
from .arrays import extent, overlap
from .host_reads import made_of_host_values, read_before
from .recorded import Access, Operation, Write
from .recording import Recorder
from .registry import root

CLEARS = ("zero_()", "fill_()")


def describe(recorder: Recorder, array: Any, label: str) -> dict[str, Any]:
    """The user's name of an array and where it was made."""
    registry = recorder.registry
    allocated = registry.allocated
    serial = registry.serial(array) if registry.serial(array) in allocated else registry.serial(root(array))
    place, bound = allocated.get(serial), registry.bound.get(serial)
    name = (names.assigned_name(*place) if place else None) or (names.assigned_name(*bound) if bound else None) or label
    return {"variable": name, "allocated": {"file": place[0], "line": place[1]} if place else None}


def path_of(recorder: Recorder, array: Any) -> str | None:
    """How the program names the array now, in the frames that stand: `bodies[1].x` for what a factory called `body.x`.

    None where that is its name by allocation, where no variable leads to it, and for an attribute of an object: what a
    class calls it says more than a variable that happens to hold it.
    """
    name = describe(recorder, array, "")["variable"]
    if name.startswith("self."):
        return None
    if recorder.paths is None:  # once a recording: the program stands still at its backward call
        frames = list(recorder.origins.frames(recorder.origins.frame(1)))
        arrays = {id(each): each for _, each in names.reachable(frames)}
        called = names.find(arrays, frames)
        recorder.paths = {
            recorder.registry.serial(each): called[key][0] for key, each in arrays.items() if key in called
        }
    serial = recorder.registry.serial(array)
    path = recorder.paths.get(serial) if serial >= 0 else None
    return path if path != name else None


def file_line(place: dict[str, Any] | None) -> dict[str, Any]:
    """{'file', 'line'} of a place, and 'via' where a library was called."""
    via = (place or {}).get("via")
    where = {"file": place["file"], "line": place["line"]} if place else {"file": None, "line": None}
    return {**where, "via": via} if via else where


def writers_between(recorder: Recorder, number: int, operation: Operation) -> list[dict[str, Any]]:
    """What may have changed a root between the operation before and this one, though the tape did not."""
    base, recording = recorder.roots[number], recorder.recording
    low, high = extent(base)
    name = describe(recorder, base, "an array")["variable"]
    found = [
        {"what": w.what, "place": w.place}
        for w in recording.writes
        if w.before_op == operation.index and w.span[0] < high and low < w.span[1]
    ]
    if found:
        return found
    for other in reversed(recording.operations[: operation.index - recording.missed]):
        if any(a.written and a.base is not base and overlap(a.array, base) for a in other.accesses):
            what = f"kernel {other.kernel}, through another array over the memory of {name}"
            return [{"what": what, "place": other.place}]
    view = _view_before(recorder, low, high, operation.index)
    if view is not None:
        return [{"what": f"a write to {name} through a NumPy view", "place": view.place}]
    return [{"what": f"a write to {name} that no hook saw (a NumPy view, another library)", "place": None}]


def filled_by(recorder: Recorder, number: int) -> dict[str, Any] | None:
    """The last write since the tape was entered that no tape knows, before the first operation on this root; that it was
    made of host values counts as one."""
    base, recording = recorder.roots[number], recorder.recording
    low, high = extent(base)
    first = next((o.index for o in recording.operations if any(a.base is base for a in o.accesses)), None)
    found = [
        w for w in recording.writes if w.span[0] < high and low < w.span[1] and (first is None or w.before_op <= first)
    ]
    if not found:
        return made_of_host_values(recorder, base)
    last = found[-1]
    return {"what": last.what, **file_line(last.place), "read": read_before(recorder, event=last.event)}


def rewritten(recorder: Recorder, numbers: set[int]) -> dict[str, Any] | None:
    """The last write into one of these roots since the tape was entered that no tape knows and that brings values."""
    spans = [extent(recorder.roots[n]) for n in numbers if n in recorder.roots]
    found = [
        w
        for w in recorder.recording.writes
        if w.what not in CLEARS and any(w.span[0] < high and low < w.span[1] for low, high in spans)
    ]
    return {"what": found[-1].what, **file_line(found[-1].place)} if found else None


def written_on_tape(recorder: Recorder, base: Any, operation: Operation) -> bool:
    """Whether an operation before this one wrote into the root."""
    earlier = (o for o in recorder.recording.operations if o.index < operation.index)
    return any(a.written and a.base is base for o in earlier for a in o.accesses)


def made_off_tape(recorder: Recorder, number: int, operation: Operation) -> bool:
    """Whether the values that the operation reads of a root were made while no tape was recording, the last of them."""
    base, recording = recorder.roots[number], recorder.recording
    low, high = extent(base)
    if written_on_tape(recorder, base, operation):
        return False
    writes = [w for w in recording.writes if w.before_op <= operation.index and w.span[0] < high and low < w.span[1]]
    return not writes or not writes[-1].taping


def overwriter(
    recorder: Recorder, operation: Operation, access: Access, behind_tape: bool = False
) -> dict[str, Any] | None:
    """The first that changed what the operation read, after it did.

    behind_tape: after the whole tape, and None where no hook saw such a write.
    """
    recording = recorder.recording
    low, high = extent(access.array)

    def writes(other: Operation) -> bool:
        return any(a.written and overlap(a.array, access.array) for a in other.accesses)

    last = recording.operations[-1].index if behind_tape else operation.index
    behind = recording.operations[last + 1 - recording.missed :]
    later = next((o for o in behind if writes(o)), None)
    beside = (w for w in recording.writes if w.before_op > last)
    outside = next((w for w in beside if w.span[0] < high and low < w.span[1]), None)
    if outside is not None and (later is None or outside.before_op <= later.index):
        return {"what": outside.what, **file_line(outside.place), "off_tape": recording.only_off_tape(outside)}
    if later is not None:
        return {"what": f"kernel {later.kernel}" if later.definition else later.kernel, **file_line(later.place)}
    return None if behind_tape else _unseen_writer(recorder, low, high, operation.index)


def _view_before(recorder: Recorder, low: int, high: int, op: int) -> Write | None:
    """The last NumPy view of these bytes that was taken before operation `op`."""
    views = [v for v in recorder.recording.views if v.before_op <= op and v.span[0] < high and low < v.span[1]]
    return views[-1] if views else None


def _unseen_writer(recorder: Recorder, low: int, high: int, read_at: int) -> dict[str, Any]:
    """A change that no hook saw: most likely through the first NumPy view taken after the read, else an earlier one."""
    views = [v for v in recorder.recording.views if v.span[0] < high and low < v.span[1]]
    after = next((v for v in views if v.before_op > read_at), views[-1] if views else None)
    if after is None:
        return {"what": "a write that no hook saw (a NumPy view, another library)", "file": None, "line": None}
    return {"what": "a write through a NumPy view taken", **file_line(after.place)}

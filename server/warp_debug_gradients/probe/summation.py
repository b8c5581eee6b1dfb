"""What if the sums that adjoints add up were kept in float64.

What all threads of all launches read has a gradient that is a sum over all of them, one by one in float32. As the sum
grows, what is added falls below its last digit: of 1e8 contributions a good part may be lost, though every adjoint is
right. So the backward pass runs once more, and such a gradient is taken out after each operation and added up in float64.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from . import forking
from .arrays import float_parts, host, quiet
from .bookkeeping import PLENTY
from .cuts import first_touched
from .evaluator import EPS
from .events import Event
from .gradients import gradient_holders, release
from .ledger import SIGNIFICANT_SHARE
from .ledger_passes import Unperturbed
from .ledger_result import what_if_numbers
from .recorded import Operation
from .recording import Recorder
from .writers import describe, file_line

FEW_SCALARS = 4096  # of an array whose gradient is taken out after each operation
TIME_SHARE = 0.5  # of the time that is left, for one more backward pass


def summed_apart(
    session: Any, unperturbed: Unperturbed, ledger: dict[str, Any], along: np.ndarray, accumulates: bool
) -> dict[str, Any] | None:
    """AD with long sums of contributions in float64 beside AD as it is; None where these cannot be what is wrong.

    along: the direction. accumulates: earlier backward calls have filled the parameter's gradient.
    """
    recorder, event, parameter = unperturbed.recorder, unperturbed.event, unperturbed.parameter
    recording, derivative = recorder.recording, ledger["finite_difference"]
    off = abs(ledger["autodiff"] - derivative)
    if recording.missed or not derivative or not off > SIGNIFICANT_SHARE * abs(derivative):  # or nan
        return None
    sums = long_sums(recording.operations, event.subject.launches)
    blamed = {number for number, bound in sums.items() if bound >= off / abs(derivative)}
    before = unperturbed.gradient(parameter)
    if not blamed or before is None:
        return None
    session.progress("ledger", "the backward pass with sums in float64")

    def summed() -> float:
        with quiet():
            sum_apart(recorder, event, unperturbed.backward, set(sums), recorder.bytes > PLENTY)
        after = unperturbed.gradient(parameter)
        assert after is not None
        return float((after - before if accumulates else after) @ along)

    now = time.perf_counter()
    found = forking.ask(summed, now + TIME_SHARE * (session.deadline - now))
    if found is None:
        return None
    taken = {a.number: a for o in recording.operations for a in o.accesses if a.number in blamed}
    readers = {o.kernel: o for o in recording.operations if any(a.number in blamed and a.read for a in o.accesses)}
    return {
        "arrays": [describe(recorder, access.array, access.label) for access in taken.values()],
        "readers": [{"kernel": kernel, **file_line(o.place)} for kernel, o in readers.items()],
        **what_if_numbers(derivative, ledger["autodiff"], found),
    }


def effective(x0: np.ndarray, v: np.ndarray, step: float) -> np.ndarray:
    """The direction as two perturbed runs have it, rounded to the parameter's dtype (float64)."""
    plus, minus = ((x0.astype(np.float64) + s * step * v).astype(x0.dtype).astype(np.float64) for s in (1.0, -1.0))
    return (plus - minus) / (2.0 * step)


def long_sums(operations: list[Operation], entries: list[Any]) -> dict[int, float]:
    """Small roots that several launches read: number -> how far round-off may move their gradients, at worst, as a part."""
    added: dict[int, list[float]] = {}
    eps: dict[int, float] = {}
    for operation in operations:
        if operation.definition is None:
            continue
        threads = float(np.prod(entries[operation.index][1]))
        for access in operation.accesses:
            base, gradient = access.base, access.base._grad
            if access.read and gradient is not None and base.device.is_cpu and base.size <= FEW_SCALARS:
                parts = float_parts(host(gradient))
                scalars = sum(p.size for p in parts)
                if scalars and access.array is base:
                    eps[access.number] = max(EPS.get(str(p.dtype), 0.0) for p in parts)
                    added.setdefault(access.number, []).append(threads / scalars)
    return {n: eps[n] * math.fsum(counts) for n, counts in added.items() if len(counts) > 1}


def sum_apart(recorder: Recorder, event: Event, backward: Any, numbers: set[int], sparing: bool) -> None:
    """Run the backward pass of `event` with the gradients of these roots summed in float64. In a child that ends soon."""
    tape = event.subject
    entries, operations = list(tape.launches), recorder.recording.operations
    holders = gradient_holders(recorder)
    sums = {n: Sum(holders[n][0]) for n in numbers if n in holders}
    dead = first_touched((range(k, k + 1) for k in range(len(operations))), operations, 0) if sparing else {}
    tape.launches = []
    backward(tape, *event.args[1:], **event.kwargs)  # seeds only
    for operation in reversed(operations):
        touched = {a.number for a in operation.accesses} & sums.keys()
        written = {a.number for a in operation.accesses if a.written}
        for number in touched:
            (sums[number].put_back if number in written else sums[number].take)()
        tape.launches = [entries[operation.index]]
        backward(tape)
        for number in touched:
            sums[number].take()
        release(holders, [part for part in dead.get(operation.index, ()) if part[0] not in sums])
    for total in sums.values():
        total.put_back()
    tape.launches = entries


class Sum:
    """The gradient of one array, added up in float64."""

    def __init__(self, holder: Any):
        self._live = float_parts(host(holder._grad))
        self._total = [np.zeros(part.shape) for part in self._live]

    def take(self) -> None:
        """Move what the gradient holds into the sum."""
        for live, total in zip(self._live, self._total):
            total += live
            live[...] = 0.0

    def put_back(self) -> None:
        """Move the sum into the gradient, for an adjoint that reads it."""
        for live, total in zip(self._live, self._total):
            live[...] = (total + live).astype(live.dtype)
            total[...] = 0.0

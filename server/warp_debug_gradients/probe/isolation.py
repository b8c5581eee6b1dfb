"""Everything that is looked at by itself after the ledger: launches, custom gradients, Warp's own per-kernel check.

Each in a forked child of its own, with a time limit: a kernel that is launched on other inputs may crash.
"""

from __future__ import annotations

import os
import tempfile
import time
from typing import Any, Callable

from . import forking
from .arrays import quiet
from .events import Event
from .isolate_function import custom_functions, isolate_function, unanswered, user_kernels
from .isolate_launch import chosen, isolate_launches
from .ledger import SIGNIFICANT_NOISE
from .recording import Recorder
from .shadows import Shadows
from .warp_gradcheck import gradcheck_tape

LOUD = 1e-4  # of the derivative: a jump out of its noise whose noise is measured, though it counts for nothing
LAUNCHES_S, LAUNCHES_SHARE = 4.0, 0.4  # seconds for the launches: at least this, and this part of what is left
FUNCTIONS_SHARE = 0.5  # of the time that is left, for one function (its kernel is compiled)
GRADCHECK_S, GRADCHECK_SHARE = 3.0, 0.15  # the first time, its own kernels have to be compiled


def launches_alone(
    session: Any,
    recorder: Recorder,
    event: Event,
    backward: Any,
    ledger: dict[str, Any],
    jumps: list[Any],
    perturbed: Callable[[], list[Shadows]],
) -> list[dict[str, Any]]:
    """The launches that a ledger blames, and each other kernel once.

    event: the backward call. perturbed: opens the recordings of the runs at +h and -h.
    """
    session.progress("ledger", "one adjoint alone")
    blamed = {(j["file"], j["line"], j["kernel"]) for j in ledger["jumps"] if j["significant"]}
    born = ledger["nonfinite"]
    if born:
        blamed.add((born["file"], born["line"], born["kernel"]))
    single = [o for o in recorder.recording.operations if recorder.is_single(o.index)]
    loud = {
        (j["file"], j["line"], j["kernel"])
        for j in ledger["jumps"]
        if abs(j["share"]) > max(SIGNIFICANT_NOISE * j["noise"], LOUD)
    }
    wanted = chosen(single, jumps, blamed | loud)
    limit = max(LAUNCHES_S, LAUNCHES_SHARE * (session.deadline - time.perf_counter()))
    until = time.perf_counter() + 0.9 * limit

    def walk() -> list[dict[str, Any]]:
        with quiet():
            return isolate_launches(recorder, event, backward, wanted, until, perturbed(), ledger["step"])

    rows = forking.ask(walk, _until(session, limit)) or []
    for row in rows:
        row["blamed"] = (row["file"], row["line"], row["kernel"]) in blamed
    return rows


def functions_alone(session: Any) -> list[dict[str, Any]]:
    """Every function with a custom gradient. Outside of any quarantine: Warp writes what it compiles."""
    wp, rows = session.wp, []
    for function in custom_functions(user_kernels(wp), os.path.dirname(os.path.abspath(wp.__file__))):
        session.progress("ledger", f"the custom gradient of {function.key} alone")
        limit = FUNCTIONS_SHARE * (session.deadline - time.perf_counter())
        row = forking.ask(lambda f=function: isolate_function(wp, f), _until(session, limit))
        rows.append(row or unanswered(function))
    return rows


def warps_own_check(session: Any, event: Event, allow_writes: Callable[[], None]) -> dict[str, Any]:
    """The answer of `wp.autograd.gradcheck_tape`. allow_writes: ends the quarantine, since it compiles kernels."""
    limit = max(GRADCHECK_S, GRADCHECK_SHARE * (session.deadline - time.perf_counter()))

    def check() -> dict[str, Any]:
        allow_writes()
        with quiet(), tempfile.TemporaryDirectory() as folder:
            tempfile.tempdir = folder  # this process has no exit handlers: what compiling leaves goes with the folder
            return gradcheck_tape(session.wp, event.subject)

    late = {"passed": None, "message": f"it gave no answer within {limit:.0f} s", "looked_at": None, "skipped": []}
    return forking.ask(check, _until(session, limit)) or late


def _until(session: Any, limit: float) -> float:
    return min(session.deadline, time.perf_counter() + limit)

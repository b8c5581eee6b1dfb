"""The unperturbed run of a ledger, at its backward call: the passes that are stepped through, each in a fork of its own.

As the program runs it first; where reads were overwritten and it matters, with these restored, all and one array
at a time.
"""

from __future__ import annotations

import os
import traceback
from dataclasses import dataclass
from typing import Any, Callable

import numpy as np

from . import forking
from .arrays import is_array, quiet, scalars
from .bookkeeping import Book, Stepper
from .clobbered import same
from .events import Event
from .gradients import gradient_holders, release_zeros
from .ledger import Term
from .recording import Recorder
from .registry import root
from .shadows import Arena, Shadows
from .writers import describe, filled_by, path_of, rewritten

RESTORED_ALONE = 6  # arrays whose reads are restored one at a time


@dataclass
class Passes:
    """What the stepped passes found: `_summary` of the pass as it is and with restored reads, each array's effect."""

    as_is: dict[str, Any]
    restored: dict[str, Any] | None
    alone: list[tuple[dict[str, Any], Term]]


class Unperturbed:
    """Makes the passes of one backward call (`event`)."""

    def __init__(
        self,
        session: Any,
        plan: dict[str, Any],
        parameter: dict[str, Any],
        target: int,
        step: float,
        recorder: Recorder,
        event: Event,
    ):
        self.session, self.plan, self.parameter, self.target, self.step = session, plan, parameter, target, step
        self.recorder, self.event = recorder, event
        self.registry = recorder.registry

    def passes(
        self,
        runs: dict[str, Any],
        arenas: dict[str, Arena],
        answer: Callable[[int, int], dict[str, Any]],
    ) -> Passes | str:
        """All passes; or what went wrong with the first. runs, arenas: the perturbed recordings, by name."""

        def stepped(restore: Any) -> dict[str, Any] | str:
            return self._stepped(runs, arenas, answer, restore)

        release_zeros(gradient_holders(self.recorder))
        as_is = stepped(None)
        if isinstance(as_is, str):
            return as_is
        harmful = [c for c in as_is["clobbered"] if c["harmful"]]
        restored = stepped("all") if harmful else None
        if isinstance(restored, dict) and same(as_is["gradients"], restored["gradients"]):
            for item in harmful:  # single adjoints come out wrong, but no parameter's gradient does
                item["harmful"] = False
            restored = None
        alone = []
        if isinstance(restored, dict):
            numbers = list(dict.fromkeys(c["root"] for c in harmful))
            for number in numbers[:RESTORED_ALONE] if len(numbers) > 1 else []:
                one = stepped({number})
                if isinstance(one, dict):
                    alone.append((next(c for c in harmful if c["root"] == number), one["autodiff"]))
        return Passes(as_is, restored if isinstance(restored, dict) else None, alone)

    @property
    def backward(self) -> Any:
        """Tape.backward as Warp has it."""
        return getattr(self.session.wp.Tape.backward, "__wrapped__", self.session.wp.Tape.backward)

    def _stepped(
        self, runs: dict[str, Any], arenas: dict[str, Arena], answer: Callable[..., Any], restore: Any
    ) -> dict[str, Any] | str:
        """One stepped backward pass in a forked child of its own; its summary, or what went wrong."""
        read_end, write_end = os.pipe()
        pid = forking.fork()
        if pid == 0:
            try:
                os.close(read_end)
                plus, minus = (Shadows.from_state(arenas[n], runs[n]["state"]) for n in ("plus", "minus"))
                with quiet():
                    preset, kept = self.preset(), self._parameters()
                    stepper = Stepper(self.recorder, plus, minus, self.step, restore, self.backward, preset, kept)
                    found = stepper.run(self.event)
                    reply: dict[str, Any] = {"ok": True, **self._summary(found)}
            except BaseException as error:
                reply = failed(error)
            forking.send(write_end, reply)
        os.close(write_end)
        reply = answer(read_end, pid)
        return reply if reply.get("ok") else str(reply.get("trace") or reply.get("error") or "no answer")

    def _summary(self, found: Book) -> dict[str, Any]:
        """The book without arrays, so that it passes through a pipe."""
        recorder = self.recorder
        own, labels = self._parameter_root(), _labels(recorder)

        def described(number: int) -> dict[str, Any]:
            label = self.parameter["name"] if number == own else labels.get(number, "")
            return describe(recorder, recorder.roots[number], label)

        entering = [(n, t) for n, t in found.entering if n != own and (t.plus or t.minus)]
        return {
            "jumps": found.jumps,
            "seed": found.seed,
            "seed_writer": rewritten(recorder, self.seeds()),
            "stale": [(t, {**described(n), "is_parameter": n == own}) for n, t in found.stale],
            "entering": [(t, {**described(n), "writer": filled_by(recorder, n)}) for n, t in entering],
            "autodiff": next((t for n, t in found.entering if n == own), Term()),
            "nonfinite": found.nonfinite,
            "gradients": self._gradients(),
            "clobbered": [
                {
                    **describe(recorder, c.access.array, c.access.label),
                    "path": path_of(recorder, c.access.array),
                    "root": c.access.number,
                    "argument": c.access.label,
                    "reader": {
                        "kernel": c.operation.kernel,
                        "file": (c.operation.place or {}).get("file"),
                        "line": (c.operation.place or {}).get("line"),
                        "via": (c.operation.place or {}).get("via"),
                    },
                    "writer": c.writer,
                    "op": c.operation.index,
                    "change": {"max_abs": c.max_abs, "relative": c.relative},
                    "harmful": c.harmful,
                    "how": "in_kernel" if c.in_kernel else "clobbered",
                    "races": c.races,
                }
                for c in found.clobbered
            ],
        }

    def gradient(self, parameter: dict[str, Any]) -> np.ndarray | None:
        """What a parameter's gradient buffer holds, float64, flat; None where it has none."""
        array = self.registry.find(parameter["serial"])
        return None if array is None or array._grad is None else scalars(array._grad).astype(np.float64)

    def _gradients(self) -> list[np.ndarray]:
        """The gradients that the pass has left in the parameters."""
        arrays = (self.registry.find(p["serial"]) for p in self.plan["parameters"])
        return [scalars(a._grad) for a in arrays if a is not None and a._grad is not None]

    def _parameters(self) -> set[int]:
        """The numbers of the parameters' roots."""
        arrays = (self.registry.find(p["serial"]) for p in self.plan["parameters"])
        return {self.recorder.number(root(a)) for a in arrays if a is not None}

    def _parameter_root(self) -> int:
        array = self.registry.find(self.parameter["serial"])
        return self.recorder.number(root(array)) if array is not None else -1

    # -- what backward starts from ---------------------------------------------------------------

    def seeds(self) -> set[int]:
        """The numbers of the roots that backward is seeded at."""
        given = [self.event.argument(1, "loss"), *(self.event.argument(2, "grads") or {})]
        return self.preset() | {self.recorder.number(root(a)) for a in given if is_array(a)}

    def preset(self) -> set[int]:
        """The numbers of the roots that seed a backward pass without a loss and without grads."""
        given = self.event.args[1:] or [v for v in self.event.kwargs.values() if v is not None]
        if any(v is not None for v in given):
            return set()
        found = set()
        for serial in self.plan["outputs"].get(str(self.target), ()):
            array = self.registry.find(serial)
            if array is not None:
                found.add(self.recorder.number(root(array)))
        return found

    def lasting(self) -> set[int]:
        """The roots with a gradient when backward begins: what seeds it, and what is left of earlier passes."""
        holders = gradient_holders(self.recorder)
        stale = {n for n, listed in holders.items() if any(np.any(scalars(h._grad)) for h in listed)}
        return self.seeds() | stale


def failed(error: BaseException) -> dict[str, Any]:
    """The reply of a child that failed."""
    return {"ok": False, "error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}


def _labels(recorder: Recorder) -> dict[int, str]:
    """A name for each root that nobody assigned to a variable: the kernel argument that first met it."""
    found: dict[int, str] = {}
    for operation in recorder.recording.operations:
        for access in operation.accesses:
            found.setdefault(access.number, f"argument {access.label} of {operation.kernel}")
    return found

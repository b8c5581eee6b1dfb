"""The ledger of one backward call, from a frozen moment of the program (mode `ledger`).

At the iteration's pause three children are forked, one after the other: at +h and -h along a direction they
record what every operation left behind and end at the backward call; the third records unperturbed, and at
the backward call forks the passes that keep the book: as the program runs it, and with the overwritten
reads restored (all, then one array at a time).
"""

from __future__ import annotations

import os
import time
import traceback
from typing import Any, Callable

import numpy as np

from . import forking, names, quarantine
from .access import argument_access
from .arrays import is_array, quiet, scalars
from .bookkeeping import Book, Stepper, same
from .check import relative
from .evaluator import DIRECTIONS, direction_key, random_directions
from .hooks import Event
from .isolation import functions_alone, launches_alone, warps_own_check
from .ledger import Term, book, group_jumps, is_flat, labelled_term
from .recording import Recorder
from .registry import root
from .shadows import Arena, ArenaFull, Shadows, renumbered

DEFAULT_STEP = 2.0**-9  # of the parameter's RMS, where no check has found a better one
RESTORED_ALONE = 6  # arrays whose reads are restored one at a time


class Ended(BaseException):
    """Unwinds a child that has become the listener of its own run."""

    def __init__(self, recorder: Recorder):
        self.recorder = recorder


class LedgerRun:
    """Makes one ledger. In a child, `run` raises `Ended` with the listener that takes over."""

    def __init__(self, session: Any, director: Any, plan: dict[str, Any]):
        self.session, self.director, self.plan = session, director, plan
        self.watch, self.registry = session.watch, director.registry
        options = session.job.get("ledger") or {}
        call = session.job.get("call")
        self.target = plan["backward_calls"][-1] if call is None else int(call)
        self.step = float(options.get("step") or DEFAULT_STEP)
        self.direction = int(options.get("direction") or 0)
        self.isolate = bool(options.get("isolate", True))
        self.folder = session.job["evidence"]
        self.arenas: dict[str, Arena] = {}
        self.allow_writes: Callable[[], None] = lambda: None
        key = options.get("parameter_key")
        self.parameter = next((p for p in plan["parameters"] if p["key"] == key), plan["parameters"][0])

    def run(self) -> dict[str, Any]:
        """The ledger as it stands in ledger.json."""
        if self.registry.uses_cuda:
            return self._none(
                "cuda",
                "the ledger needs a forked process, and CUDA contexts do not survive a fork: run it with device=cpu",
            )
        found = self._forked(
            None, lambda recorder, event: {"ok": False, "error": "the parameter was not seen again"}, "values"
        )
        if not found.get("ok"):
            return self._none("not_measured", found.get("error") or "the parameter was not seen again")
        directions = random_directions(found["x0"], direction_key(self.parameter), DIRECTIONS)
        self.v = directions[min(self.direction, len(directions) - 1)]
        self.arenas = {name: Arena(self.folder) for name in ("plus", "minus", "now")}
        runs: dict[str, Any] = {}
        started = time.perf_counter()
        for name, sign in (("plus", 1.0), ("minus", -1.0)):
            self.session.progress("ledger", f"recording the program at {'+' if sign > 0 else '-'}h")
            runs[name] = self._forked(sign * self.step * self.v, self._record_end, name, self.arenas[name])
            if not runs[name].get("ok"):
                return self._none(
                    "not_measured", runs[name].get("error") or "the perturbed program did not reach its backward call"
                )
        recorded = time.perf_counter()
        self.session.progress("ledger", "stepping through the backward pass")
        self.runs = runs
        result = self._forked(None, self._keep_book, "book", self.arenas["now"])
        if not result.get("ok"):
            return self._none(
                result.get("reason") or "not_measured",
                result.get("error") or "the backward pass could not be stepped through",
            )
        finished = time.perf_counter()
        result["ledger"]["timing"] = {"recording": (recorded - started) / 2, "book": finished - recorded}
        if self.isolate:
            result["ledger"]["isolated"] += functions_alone(self.session)
        return result["ledger"]

    def _none(self, reason: str, message: str) -> dict[str, Any]:
        return {"failed": True, "reason": reason, "message": message}

    # -- forked runs ---------------------------------------------------------------------------

    def _forked(
        self, delta: np.ndarray | None, at_target: Callable, name: str, arena: Arena | None = None
    ) -> dict[str, Any]:
        """Fork a child that runs on to the backward call and answers there; returns its answer."""
        read_end, write_end = os.pipe()
        pid = forking.fork()
        if pid:
            os.close(write_end)
            return self._answer(read_end, pid)
        os.close(read_end)
        kept = {write_end, *(a.descriptor for a in self.arenas.values())}
        self.allow_writes = quarantine.enter(keep=kept, forbid_growth=False)
        shadows = Shadows(arena) if arena is not None else None
        item: dict[str, Any] | None = {
            "event": self.parameter["event"],
            "serial": self.parameter["serial"],
            "delta": delta,
        }
        if name == "values":
            item["peek"] = lambda values: forking.send(write_end, {"ok": True, "x0": values})
        elif delta is None:
            item = None

        def finish(recorder: Recorder, event: Event) -> None:
            try:
                reply = at_target(recorder, event)
            except ArenaFull as error:
                reply = {"ok": False, "reason": "too_large", "error": str(error)}
            except BaseException as error:
                reply = _failed(error)
            forking.send(write_end, reply)

        recorder = Recorder(
            item,
            self.target,
            len(self.watch.backwards),
            self.watch,
            shadows or _Nothing(),
            argument_access,
            finish,
            answer=lambda message: forking.send(write_end, {"ok": False, "error": message}),
            detailed=name == "book",
        )
        recorder.early_loss = self.plan["early_losses"].get(str(self.target))
        recorder.enter_open_tape()
        raise Ended(recorder)

    def _answer(self, descriptor: int, pid: int) -> dict[str, Any]:
        """A child's reply; one that is not ok where it gave none."""
        reply, problem = forking.receive(descriptor, pid, self.session.deadline)
        if problem == "time":
            return {"ok": False, "reason": "time", "error": "the time ran out"}
        if problem is not None:
            return {"ok": False, "error": f"the forked program ended with {problem} before its backward call"}
        return reply

    def _record_end(self, recorder: Recorder, event: Event) -> dict[str, Any]:
        recorder.finish()
        recording = recorder.recording
        if recording.tape is not event.subject:
            return {"ok": False, "error": "the tape of this backward call is not the one that was recorded last"}
        return {
            "ok": True,
            "state": recorder.shadows.state(),
            "kernels": [o.kernel for o in recording.operations],
            "objective": recorder.objective(event),
            "missed": recording.missed,
        }

    # -- the book ------------------------------------------------------------------------------

    def _keep_book(self, recorder: Recorder, event: Event) -> dict[str, Any]:
        base = self._record_end(recorder, event)
        if not base["ok"]:
            return base
        for name in ("plus", "minus"):
            if self.runs[name]["kernels"] != base["kernels"]:
                return {
                    "ok": False,
                    "reason": "not_measured",
                    "error": "the perturbed program launched other kernels: the step crosses a branch of the host program",
                }
            matched = renumbered(self.runs[name]["state"], base["state"])
            if matched is None:
                return {
                    "ok": False,
                    "reason": "not_measured",
                    "error": "the perturbed program uses other arrays on the tape, which cannot be matched with those of "
                    "the unperturbed one",
                }
            self.runs[name]["state"] = matched
        as_is = self._stepped(recorder, event, None)
        if isinstance(as_is, str):
            return {"ok": False, "error": as_is}
        harmful = [c for c in as_is["clobbered"] if c["harmful"]]
        restored = self._stepped(recorder, event, "all") if harmful else None
        alone = []
        if isinstance(restored, dict) and same(as_is["gradients"], restored["gradients"]):
            harmful, restored = _without_effect(harmful), None
        if isinstance(restored, dict):
            numbers = list(dict.fromkeys(c["root"] for c in harmful))
            for number in numbers[:RESTORED_ALONE] if len(numbers) > 1 else []:
                one = self._stepped(recorder, event, {number})
                if isinstance(one, dict):
                    alone.append((next(c for c in harmful if c["root"] == number), one["autodiff"]))
        given = [event.argument(1, "loss"), *(event.argument(2, "grads") or {})]
        seeds = self._preset(event) | {recorder.number(root(a)) for a in given if is_array(a)}
        ledger = self._assemble(recorder, base, as_is, restored if isinstance(restored, dict) else None, alone, seeds)
        if self.isolate:
            original = self._original_backward()
            ledger["isolated"] = launches_alone(self.session, recorder, event, original, ledger, as_is["jumps"])
            ledger["gradcheck_tape"] = warps_own_check(self.session, event, self.allow_writes)
        return {"ok": True, "ledger": ledger}

    def _original_backward(self) -> Any:
        return getattr(self.session.wp.Tape.backward, "__wrapped__", self.session.wp.Tape.backward)

    def _stepped(self, recorder: Recorder, event: Event, restore: Any) -> dict[str, Any] | str:
        """One stepped backward pass in a forked child of its own; its summary, or what went wrong."""
        read_end, write_end = os.pipe()
        pid = forking.fork()
        if pid == 0:
            try:
                os.close(read_end)
                plus, minus = (Shadows.from_state(self.arenas[n], self.runs[n]["state"]) for n in ("plus", "minus"))
                with quiet():
                    original = self._original_backward()
                    stepper = Stepper(recorder, plus, minus, self.step, restore, original, self._preset(event))
                    found = stepper.run(event)
                    reply: dict[str, Any] = {"ok": True, **self._summary(recorder, stepper, found)}
            except BaseException as error:
                reply = _failed(error)
            forking.send(write_end, reply)
        os.close(write_end)
        reply = self._answer(read_end, pid)
        return reply if reply.get("ok") else str(reply.get("trace") or reply.get("error") or "no answer")

    def _summary(self, recorder: Recorder, stepper: Stepper, found: Book) -> dict[str, Any]:
        """The book without arrays, so that it passes through a pipe."""
        own = self._parameter_root(recorder)
        labels = _labels(recorder)
        entering = [
            (n, t, {**stepper.describe(recorder.roots[n], labels.get(n, "")), "writer": stepper.filled_by(n)})
            for n, t in found.entering
        ]
        return {
            "jumps": found.jumps,
            "seed": found.seed,
            "stale": [
                (t, {**stepper.describe(recorder.roots[n], labels.get(n, "")), "is_parameter": n == own})
                for n, t in found.stale
            ],
            "entering": [(t, d) for n, t, d in entering if n != own],
            "autodiff": next((t for n, t, _ in entering if n == own), Term()),
            "nonfinite": found.nonfinite,
            "gradients": self._gradients(),
            "clobbered": [
                {
                    **stepper.describe(c.access.array, c.access.label),
                    "root": recorder.number(root(c.access.array)),
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
                }
                for c in found.clobbered
            ],
        }

    def _gradients(self) -> list[np.ndarray]:
        """The gradients that the pass has left in the parameters."""
        arrays = (self.registry.find(p["serial"]) for p in self.plan["parameters"])
        return [scalars(a._grad) for a in arrays if a is not None and a._grad is not None]

    def _preset(self, event: Event) -> set[int]:
        """The numbers of the roots that seed a backward pass without a loss and without grads."""
        given = event.args[1:] or [v for v in event.kwargs.values() if v is not None]
        if any(v is not None for v in given):
            return set()
        found = set()
        for serial in self.plan["outputs"].get(str(self.target), ()):
            array = self.registry.find(serial)
            if array is not None:
                found.add(self.registry.serial(root(array)))
        return found

    def _parameter_root(self, recorder: Recorder) -> int:
        array = self.registry.find(self.parameter["serial"])
        return recorder.number(root(array)) if array is not None else -1

    def _assemble(
        self,
        recorder: Recorder,
        base: dict[str, Any],
        as_is: dict[str, Any],
        restored: dict[str, Any] | None,
        alone: list,
        seeds: set[int],
    ) -> dict[str, Any]:
        plus, minus = self.runs["plus"]["objective"], self.runs["minus"]["objective"]
        measured = np.isfinite(plus) and np.isfinite(minus) and np.isfinite(base["objective"])
        if measured and str(self.target) not in self.plan["outputs"]:  # a loss, and nothing seeded beside it
            noise = 1.2e-7 * abs(base["objective"]) / self.step
            derivative = Term((plus - base["objective"]) / self.step, (base["objective"] - minus) / self.step, noise)
        else:
            derivative = as_is["seed"]  # seeded by arrays: <seed, tangent> is the derivative of the implied objective
        scale = abs(derivative.value) or abs(as_is["autodiff"].value) or 1.0
        fixed = {(j.op, j.kind): j.term.value for j in restored["jumps"]} if restored is not None else None
        rows = group_jumps(as_is["jumps"], scale, fixed)
        seed = labelled_term(as_is["seed"] - derivative, scale)
        own = sum((t for t, d in as_is["stale"] if d["is_parameter"]), Term())
        accumulates = self.target != self.plan["backward_calls"][0]  # earlier calls of this iteration filled the buffer
        stale = [labelled_term(t, scale, **d) for t, d in as_is["stale"] if not (accumulates and d["is_parameter"])]
        truncated = [labelled_term(t, scale, **d) for t, d in as_is["entering"] if t.plus or t.minus]
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
        broken = as_is["nonfinite"] is not None
        return {
            "iteration": self.plan["iteration"],
            "backward_call": self.target,
            "parameter": {k: self.parameter.get(k) for k in ("name", "dtype", "shape", "allocated", "key")},
            "objective": {"name": self.plan["objective_name"], "value": base["objective"]},
            "ops": len(base["kernels"]),
            "ops_before_recording": base["missed"],
            "step": self.step,
            "finite_difference": derivative.value,
            "autodiff": float("nan") if broken else ad,
            "error": (total + derivative).noise,
            "seed": seed,
            "stale": stale,
            "truncated": truncated,
            "jumps": [] if broken else rows,
            "book": [] if broken else book(as_is["jumps"], seed["value"] + sum(r["value"] for r in stale)),
            "flat": not broken and is_flat(rows, [seed], stale, truncated),
            "balance": (ad - derivative.value - terms) / scale,
            "nonfinite": as_is["nonfinite"],
            "overwrites": _merged(as_is["clobbered"]),
            "what_if": self._what_if(derivative.value, as_is, restored, alone),
            "observations": _observations(recorder, self.target in self.plan["seeds_consumed"], seeds),
        }

    @staticmethod
    def _what_if(
        derivative: float, as_is: dict[str, Any], restored: dict[str, Any] | None, alone: list
    ) -> dict[str, Any] | None:
        if restored is None:
            return None
        before, after = as_is["autodiff"].value, restored["autodiff"].value
        return {
            "finite_difference": derivative,
            "as_is": before,
            "restored": after,
            "relative_error_as_is": relative(before, derivative),
            "relative_error_restored": relative(after, derivative),
            "arrays": [
                {
                    "variable": c["variable"],
                    "allocated": c["allocated"],
                    "restored": t.value,
                    "relative_error": relative(t.value, derivative),
                }
                for c, t in alone
            ],
        }


def _without_effect(clobbered: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Single adjoints come out wrong, but no parameter's gradient does: these overwrites do no harm. Returns none."""
    for item in clobbered:
        item["harmful"] = False
    return []


def _labels(recorder: Recorder) -> dict[int, str]:
    """A name for each root that nobody assigned to a variable: the kernel argument that first met it."""
    found: dict[int, str] = {}
    for operation in recorder.recording.operations:
        for access in operation.accesses:
            found.setdefault(recorder.number(root(access.array)), f"argument {access.label} of {operation.kernel}")
    return found


def _failed(error: BaseException) -> dict[str, Any]:
    return {"ok": False, "error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}


class _Nothing:
    """Shadows of a run that records nothing."""

    def sync(self, *_: Any) -> bool:
        return False

    def clear(self) -> None:
        pass


def _merged(clobbered: list[dict[str, Any]]) -> list[dict[str, Any]]:
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
        for name in ("max_abs", "relative"):
            row["change"] = {**row["change"], name: max(row["change"][name], item["change"][name])}
    return sorted(groups.values(), key=lambda row: (not row["harmful"], row["op"]))


def _variable(recorder: Recorder, array: Any) -> str | None:
    """The variable that the array was assigned to where it was made."""
    place = recorder.registry.allocated.get(recorder.registry.serial(array))
    return names.assigned_name(*place) if place else None


def _after_the_loss(recorder: Recorder, seeds: set[int]) -> list[Any]:
    """The kernels recorded after the last operation that writes what backward is seeded with."""
    operations = recorder.recording.operations
    makers = [
        o.index for o in operations if any(a.written and recorder.number(root(a.array)) in seeds for a in o.accesses)
    ]
    return [o for o in operations if makers and o.index > max(makers) and o.definition is not None]


def _observations(recorder: Recorder, seed_spent: bool, seeds: set[int]) -> list[dict[str, Any]]:
    """What else the trace shows: facts, not faults."""
    found: list[dict[str, Any]] = []
    operations = recorder.recording.operations
    if seed_spent:
        found.append(
            {
                "kind": "seed_spent",
                "message": "the seed array was emptied by an earlier backward pass and is handed over again: it seeds nothing",
                "file": None,
                "line": None,
                "variable": None,
            }
        )
    held = recorder.recording.held_before
    if held:
        again = recorder.recording.reentered
        how = "it was entered again without reset" if again else "its `with` block was not left since"
        found.append(
            {
                "kind": "tape_reentered" if again else "tape_left_open",
                "message": f"the tape already held {held} operations of an earlier recording: {how}, and its backward "
                "pass runs them again",
                "file": None,
                "line": None,
                "variable": None,
            }
        )
    late = _after_the_loss(recorder, seeds)
    for operation in {(o.kernel, repr(o.place)): o for o in late}.values():
        found.append(
            {
                "kind": "after_loss",
                "message": f"{operation.kernel} is recorded after the operation that makes what backward starts from: "
                "it is no part of the forward pass",
                "file": (operation.place or {}).get("file"),
                "line": (operation.place or {}).get("line"),
                "variable": None,
            }
        )
    for operation in operations:
        where = {"file": (operation.place or {}).get("file"), "line": (operation.place or {}).get("line")}
        if operation.disabled:
            found.append(
                {
                    "kind": "backward_disabled",
                    "message": f"kernel {operation.kernel} is built with enable_backward=False: its adjoint does nothing",
                    **where,
                    "variable": operation.kernel,
                }
            )
        for access in operation.accesses:
            if access.written and getattr(access.array, "retain_grad", False):
                writers = [o for o in operations if any(a.written and a.array is access.array for a in o.accesses)]
                if len(writers) > 1:
                    found.append(
                        {
                            "kind": "retain_grad",
                            "message": f"an array with retain_grad=True is written {len(writers)} times: its gradient is not consumed, so contributions count again",
                            **where,
                            "variable": _variable(recorder, access.array) or access.label,
                        }
                    )
    signature: dict[Any, int] = {}
    for operation in operations:
        key = (
            operation.kernel,
            (operation.place or {}).get("line"),
            tuple((a.label, a.array.ptr, tuple(a.array.shape)) for a in operation.accesses),
        )
        previous = signature.get(key)
        own = {a.array.ptr for a in operation.accesses if a.read}  # what feeds itself is a step, not a repetition
        stored = [a for a in operation.accesses if a.written and not a.read and a.array.ptr not in own]
        if previous == operation.index - 1 and stored and operation.definition:
            found.append(
                {
                    "kind": "duplicate_launch",
                    "message": f"the same launch of {operation.kernel} is recorded twice in a row on the same arrays",
                    "file": (operation.place or {}).get("file"),
                    "line": (operation.place or {}).get("line"),
                    "variable": None,
                }
            )
        signature[key] = operation.index
    unique: dict[str, dict[str, Any]] = {}
    for item in found:
        unique.setdefault(repr(item), item)
    return list(unique.values())

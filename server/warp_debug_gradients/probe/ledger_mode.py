"""The ledger of one backward call, from a frozen moment of the program (mode `ledger`).

At the iteration's pause three children are forked, one after the other: at +h and -h along a direction they
record what every operation left behind and end at the backward call; the third records unperturbed, and at
the backward call forks the passes that keep the book.

A tape whose recordings would not fit into the budget is done coarse to fine: three runs record the ends of some
stretches of operations (`cuts`), and where their ledger is not flat, the operations of those stretches that put the most
in are recorded singly: made again from the ends (`replayed`), or, where the tape alone cannot do that, in three more
runs. So memory is bounded, and a tape takes four forward runs, seven at most.
"""

from __future__ import annotations

import json
import os
import resource
import time
from typing import Any, Callable

import numpy as np

from . import cuts, forking, quarantine, replayed
from .evaluator import DIRECTIONS, direction_key, random_directions
from .events import Event
from .host_reads import note_numbers, numbers_of, that_follow
from .isolation import functions_alone, launches_alone, warps_own_check
from .ledger_passes import Unperturbed, failed
from .ledger_result import accounted_for, assemble, better_step, derivative_of, is_better, sampled, settle_noise
from .observations import observations
from .recording import Recorder
from .shadows import Arena, ArenaFull, Shadows
from .summation import effective, summed_apart

DEFAULT_STEP = 2.0**-9  # of the parameter's RMS, where no check has found a better one
BUDGET = 1 << 30  # bytes that the three recordings may hold together, where the job names none
FIRST = 0.9  # of its budget that the first run may fill: what it holds, the other two hold for certain
RUNS = ("plus", "minus", "now")
SHAPE_FILE = "shape.{}.json"  # in the evidence folder: what a check has seen of an iteration's tape
STEPS_TRIED = 3  # besides the first, where a jump is lost in its noise
FINE_TAKES = 1.4  # times as long as the coarse round: it records more
TOO_LATE = ". To record those that put most in singly takes some {} s more, and {} s were left"


class Ended(BaseException):
    """Unwinds a child that has become the listener of its own run."""

    def __init__(self, recorder: Recorder):
        self.recorder = recorder


class NoLedger(Exception):
    """Why no ledger could be kept: a code, and a sentence."""

    def __init__(self, reason: str, message: str):
        super().__init__(message)
        self.reason = reason


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
        self.one_step = bool(options.get("one_step"))  # the check found nothing wrong: no hidden jump is looked for
        self.budget = int(options.get("budget_bytes") or BUDGET) // len(RUNS)  # of each recording
        self.arenas: dict[str, Arena] = {}
        self.allow_writes: Callable[[], None] = lambda: None
        key = options.get("parameter_key")
        self.parameter = next((p for p in plan["parameters"] if p["key"] == key), plan["parameters"][0])
        self.runs: dict[str, Any] = {}  # the perturbed recordings
        self.as_seen = False  # whether the tape is cut as a check has seen it
        self.seconds: list[tuple[str, float]] = []  # CPU time of each forked run

    def run(self) -> dict[str, Any]:
        """The ledger as it stands in ledger.json."""
        try:
            return self._ledger()
        except NoLedger as error:
            return {"failed": True, "reason": error.reason, "message": str(error)}

    def _ledger(self) -> dict[str, Any]:
        if self.registry.uses_cuda:
            raise NoLedger(
                "cuda",
                "the ledger needs a forked process, and CUDA contexts do not survive a fork: run it with device=cpu",
            )
        unseen = {"ok": False, "error": "the parameter was not seen again"}
        found = self._forked("values", None, lambda recorder, event: unseen)
        self.x0: np.ndarray = found["x0"]
        directions = random_directions(self.x0, direction_key(self.parameter), DIRECTIONS)
        self.v = directions[min(self.direction, len(directions) - 1)]
        self.arenas = {name: Arena(self.session.job["evidence"], self.budget) for name in RUNS}
        started = time.perf_counter()
        ledger = self._at_step()
        ledger = self._at_better_step(ledger, time.perf_counter() - started)
        recorded = [s for name, s in self.seconds if name in ("plus", "minus")]
        books = [s for name, s in self.seconds if name == "now"]
        ledger["timing"] = {
            "recording": sum(recorded) / len(recorded),
            "book": sum(books) / len(books),
            "total": sum(s for _, s in self.seconds),
            "forward_runs": len(recorded) + len(books),
        }
        if self.isolate:
            ledger["isolated"] += functions_alone(self.session)
        return ledger

    def _at_step(self) -> dict[str, Any]:
        """The ledger at `self.step`."""
        ledger = self._as_seen()
        if ledger is None:
            self.arenas["plus"].limit = int(FIRST * self.budget)
            first = self._perturbed("plus", 1.0, None)
            self.arenas["plus"].limit = self.budget
            shape = first["shape"]
            ledger = self._round(first, None) if shape is None else self._coarse_to_fine(shape)
        return ledger

    def _at_better_step(self, ledger: dict[str, Any], took: float) -> dict[str, Any]:
        """The ledger of the step at which it tells most: the check's own is the best for the objective alone.

        took: seconds of the first.
        """
        factor = None if self.one_step else better_step(ledger)
        if factor is None:
            return ledger
        for _ in range(STEPS_TRIED):
            if better_step(ledger) != factor or self.session.deadline - time.perf_counter() < FINE_TAKES * took:
                break
            before, self.step, self.runs = self.step, self.step * factor, {}
            try:
                other = self._at_step()
            except NoLedger:  # a branch of the host program, or no time
                other = None
            if other is None or not is_better(other, ledger):
                self.step = before
                break
            ledger = other
        return ledger

    def _as_seen(self) -> dict[str, Any] | None:
        """The ledger of a long tape whose shape the check has brought back; None where it did not, or it is another one now."""
        path = os.path.join(self.session.job["evidence"], SHAPE_FILE.format(self.plan["iteration"]))
        if not os.path.isfile(path):
            return None
        with open(path, encoding="utf-8") as stream:
            found = json.load(stream)
        if found["call"] != self.target or sum(found["sizes"]) < self.budget:
            return None
        self.as_seen = True
        try:
            return self._coarse_to_fine(cuts.Shape.read(found))
        except NoLedger as error:
            if error.reason not in ("too_large", "other_shape"):
                raise
            self.as_seen, self.runs = False, {}
            self.arenas["plus"].clear()
            return None

    def _coarse_to_fine(self, shape: cuts.Shape) -> dict[str, Any]:
        """A tape whose recordings do not fit: its stretches first, then what is inside those that jump."""
        ends = cuts.coarse(shape, self.budget)
        if ends is None:
            raise NoLedger("too_large", _too_large(self.budget))
        started = time.perf_counter()
        coarse = self._round(self._perturbed("plus", 1.0, ends), ends, shape)
        singly = None if coarse.pop("taken_apart") else self._singly(coarse, shape, ends)
        if singly is None:
            return coarse
        needed = FINE_TAKES * (time.perf_counter() - started)
        left = self.session.deadline - time.perf_counter()
        too_late = TOO_LATE.format(f"{needed:.3g}", f"{max(left, 0.0):.3g}")
        if left < needed:
            coarse["message"] += too_late
            return coarse
        try:
            return self._round(self._perturbed("plus", 1.0, singly), singly)
        except NoLedger as error:
            if error.reason not in ("too_large", "time"):
                raise
            if error.reason == "time":
                coarse["message"] += too_late
            return coarse

    def _singly(self, coarse: dict[str, Any], shape: cuts.Shape, ends: cuts.Cuts) -> cuts.Cuts | None:
        """The stretches that put the most in taken apart; None where none does, or none fits."""
        born, rest, rows = coarse["nonfinite"], coarse["unrecorded"], coarse["stretches"]
        jumps = {row["first_op"]: row["value"] for row in rows if row["significant"]}
        if born is not None and "stretch" in born:
            jumps = {born["stretch"]: np.nan}
        elif not jumps and rest["significant"]:  # a little in each of them
            jumps = {row["first_op"]: row["value"] for row in rows}
        return cuts.fine(shape, ends, jumps, self.budget) if jumps else None

    def _round(self, plus: dict[str, Any], how: cuts.Cuts | None, shape: cuts.Shape | None = None) -> dict[str, Any]:
        """The ledger of three runs, the first of which is there already.

        how: what they record singly. shape: of a tape in stretches that may be taken apart at once.
        """

        def book(recorder: Recorder, event: Event) -> dict[str, Any]:
            return self._keep_book(recorder, event, how, shape)

        self.runs = {"plus": plus}
        self.runs["minus"] = self._perturbed("minus", -1.0, how)
        self.session.progress("ledger", "stepping through the backward pass")
        self.arenas["now"].clear()
        return self._forked("now", None, book, how)["ledger"]

    # -- forked runs ---------------------------------------------------------------------------

    def _perturbed(self, name: str, sign: float, how: cuts.Cuts | None) -> dict[str, Any]:
        self.session.progress("ledger", f"recording the program at {'+' if sign > 0 else '-'}h")
        self.arenas[name].clear()
        return self._forked(name, sign * self.step * self.v, self._record_end, how)

    def _forked(
        self, name: str, delta: np.ndarray | None, at_target: Callable[..., Any], how: cuts.Cuts | None = None
    ) -> dict[str, Any]:
        """Fork a child that runs on to the backward call and answers there; returns its answer, or raises NoLedger."""
        read_end, write_end = os.pipe()
        before = _children_s()
        pid = forking.fork()
        if pid:
            os.close(write_end)
            reply = self._answer(read_end, pid)
            self.seconds.append((name, _children_s() - before))
            if not reply.get("ok"):
                raise NoLedger(reply.get("reason") or "not_measured", reply.get("error") or "the run gave no answer")
            return reply
        os.close(read_end)
        kept = {write_end, *(a.descriptor for a in self.arenas.values())}
        self.allow_writes = quarantine.enter(keep=kept, forbid_growth=False)
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
                reply = failed(error)
            forking.send(write_end, reply)

        recorder = Recorder(
            item,
            self.target,
            len(self.watch.backwards),
            self.watch,
            Shadows(self.arenas[name]) if name in self.arenas else None,
            finish,
            answer=lambda message: forking.send(write_end, {"ok": False, "error": message}),
            detailed=name == "now",
            cuts=how,
        )
        recorder.parameter = self.parameter["serial"]
        recorder.early_loss = self.plan["early_losses"].get(str(self.target))
        recorder.enter_open_tape()
        self.registry.only_numbers = not recorder.detailed
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
        shape = None
        if recording.overflow is not None:
            if recorder.cuts is not None or self.runs:
                return {"ok": False, "reason": "too_large", "error": _too_large(self.budget)}
            shape = recorder.shape(self._unperturbed(recorder, event).lasting())
        if (
            self.as_seen
            and recorder.cuts is not None
            and not recorder.cuts.fits(recording.missed, [o.parts for o in recording.operations])
        ):
            return {"ok": False, "reason": "other_shape", "error": "the tape is another one than in the run before"}
        assert recorder.shadows is not None
        return {
            "ok": True,
            "state": recorder.shadows.state(),
            "kernels": [o.kernel for o in recording.operations],
            "objective": recorder.objective(event),
            "shape": shape,
            "numbers": numbers_of(recorder),
        }

    def _perturbed_runs(self) -> list[Shadows]:
        """The recordings at +h and -h, to step through."""
        return [Shadows.from_state(self.arenas[name], self.runs[name]["state"]) for name in ("plus", "minus")]

    # -- the book ------------------------------------------------------------------------------

    def _unperturbed(self, recorder: Recorder, event: Event) -> Unperturbed:
        return Unperturbed(self.session, self.plan, self.parameter, self.target, self.step, recorder, event)

    def _keep_book(
        self, recorder: Recorder, event: Event, how: cuts.Cuts | None, shape: cuts.Shape | None
    ) -> dict[str, Any]:
        base = self._record_end(recorder, event)
        if not base["ok"]:
            return base
        if any(run["kernels"] != base["kernels"] for run in self.runs.values()):
            message = "the perturbed program launched other kernels: the step crosses a branch of the host program"
            return {"ok": False, "reason": "not_measured", "error": message}
        sizes = _sizes(base)
        if any(_sizes(run) != sizes for run in self.runs.values()):
            message = (
                "the perturbed program uses other arrays on the tape, which cannot be matched with those of the "
                "unperturbed one"
            )
            return {"ok": False, "reason": "not_measured", "error": message}
        unperturbed = self._unperturbed(recorder, event)
        started = time.perf_counter()
        passes = unperturbed.passes(self.runs, self.arenas, self._answer)
        if isinstance(passes, str):
            return {"ok": False, "error": passes}
        took = time.perf_counter() - started
        plus, minus = self.runs["plus"]["objective"], self.runs["minus"]["objective"]
        measured = derivative_of(plus, base["objective"], minus, self.step)
        if str(self.target) in self.plan["outputs"]:
            measured = None  # seeded by arrays, perhaps beside a loss
        accumulates = self.target != self.plan["backward_calls"][0]
        operations = recorder.recording.operations
        numbers, apart = assemble(passes, measured, self.step, accumulates, how), False
        if shape is not None and how is not None:
            singly = self._singly(numbers, shape, how)
            if singly is not None and self._take_apart(recorder, how, singly, took):
                apart, again = True, unperturbed.passes(self.runs, self.arenas, self._answer)
                if isinstance(again, str):
                    recorder.cuts = how
                else:
                    passes, numbers = again, assemble(again, measured, self.step, accumulates, singly)
        ledger = {
            "iteration": self.plan["iteration"],
            "backward_call": self.target,
            "parameter": {k: self.parameter.get(k) for k in ("name", "dtype", "shape", "allocated", "key")},
            "objective": {"name": self.plan["objective_name"], "value": base["objective"]},
            "ops": len(operations),
            "ops_before_recording": recorder.recording.missed,
            "ops_recorded": sum(recorder.is_single(o.index) for o in operations),
            **numbers,
            "observations": observations(recorder, self.target in self.plan["seeds_consumed"], unperturbed.seeds()),
            "isolated": [],
            "summation": None,
        }
        following = that_follow(self.runs["plus"]["numbers"], self.runs["minus"]["numbers"])
        note_numbers(recorder, following, numbers["jumps"])
        ledger["message"] = sampled(ledger)
        if self.isolate and ledger["ops_recorded"]:
            jumps = passes.as_is["jumps"]
            ledger["isolated"] = launches_alone(
                self.session, recorder, event, unperturbed.backward, ledger, jumps, self._perturbed_runs
            )
            settle_noise(ledger)
        if self.isolate:
            along = effective(self.x0, self.v, self.step)
            if not accounted_for(ledger):
                ledger["summation"] = summed_apart(self.session, unperturbed, ledger, along, accumulates)
            ledger["gradcheck_tape"] = warps_own_check(self.session, event, self.allow_writes)
        if shape is not None:
            ledger["taken_apart"] = apart
        return {"ok": True, "ledger": ledger}

    def _take_apart(self, recorder: Recorder, ends: cuts.Cuts, singly: cuts.Cuts, took: float) -> bool:
        """Record some stretches singly, made again from their ends in all three runs; False where that cannot be done.

        took: seconds of the passes, which come once more.
        """
        assert recorder.shadows is not None
        stretches = [s for s in ends.stretches if len(s) > 1 and len(singly.stretch(s.start)) == 1]
        left = self.session.deadline - time.perf_counter()
        if left < FINE_TAKES * took or replayed.obstacle(recorder, stretches) is not None:
            return False
        self.session.progress("ledger", "making the operations of the stretches that jump again")
        states = {name: run["state"] for name, run in self.runs.items()} | {"now": recorder.shadows.state()}
        for name, state in states.items():
            made = forking.ask(
                lambda name=name, state=state: replayed.replay(recorder, ends, stretches, self.arenas[name], state),
                self.session.deadline - took,
            )
            if made is None:
                return False
            states[name] = made
        recorder.shadows.take_over(states.pop("now"))
        for name, state in states.items():
            self.runs[name]["state"] = state
        recorder.cuts = singly
        recorder.roots.update(
            (a.number, a.base) for o in recorder.recording.operations for a in o.accesses if recorder.is_single(o.index)
        )
        return True


def _children_s() -> float:
    """CPU seconds of the children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _sizes(run: dict[str, Any]) -> dict[int, int]:
    """The bytes of each root that a run recorded."""
    return {root: size for root, (_, size) in run["state"]["place"].items()}


def _too_large(budget: int) -> str:
    return (
        f"even at the ends of long stretches of its tape the program holds more than {budget / (1 << 20):.3g} MiB at once, three "
        "times over: shrink the run, or give the ledger more memory (WARP_DEBUG_GRADIENTS_LEDGER_MB)"
    )

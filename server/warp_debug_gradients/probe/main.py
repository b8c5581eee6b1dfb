"""One job: run the user's program watched, measured, or for a single evaluation; write the result."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import sys
import tempfile
import threading
import time
import weakref
from typing import Any, Callable, NoReturn

from . import forking, quarantine
from .attach import Program, StopProgram, after_import
from .failure import describe_failure
from .inputs import Inputs

STOP_CHECK_EVENTS = 16  # how many events pass between two looks at the clock
PROGRESS_SECONDS = 0.5
CHILD_FACTOR = 20.0  # an evaluation may take this many times the traced program's run time, and at least:
CHILD_SECONDS = 10.0
LONG_TAPE = 2000  # operations from which a slow program's reference brings back the shape of its tape


def run(job: dict[str, Any]) -> int:
    """Run the job; returns the exit status of the probe (0 whenever a result was written)."""
    return Session(job).run()


class Session:
    """What belongs to one probe process: the program, the listener that mode asks for, the result."""

    def __init__(self, job: dict[str, Any]):
        self.job = job
        self.mode = job["mode"]
        self.pid = os.getpid()
        self.started = time.perf_counter()
        self.deadline = self.started + float(job.get("budget_s") or 1e9)
        self.program = Program.from_job(job)
        self.wp: Any = None
        self.hub: Any = None
        self.director: Director | None = None
        self.watch: Any = None
        self.gradcheck: dict[str, Any] | None = None
        self.tracker: Any = None
        self.inputs: Inputs | None = None
        self._progress_at = 0.0
        self._allow_writes: Callable[[], None] = lambda: None
        self._written = False

    # -- life ----------------------------------------------------------------------------------

    def run(self) -> int:
        if self.job.get("device") == "cpu":
            os.environ["CUDA_VISIBLE_DEVICES"] = ""  # no CUDA context: the process can be forked
        signal.signal(signal.SIGTERM, self._terminated)
        _soften_hard_exits()
        self.importing = after_import("warp", self.attach)
        if self.mode == "trace":
            self.inputs = Inputs(os.path.dirname(self.job["result"]))
        self._keep_writes()
        if self.mode != "rerun":
            self.progress("start", "starting the program")
        target = self.job["target"]
        outcome = self.program.guard(self._call_target) if target.get("forward") else self.program.execute()
        child = self.director.measurement if self.director else None
        if child is not None:  # a forked evaluation that the program outlived
            forbidden = quarantine.forbidden_write(outcome.exception)
            child.program_ended(forbidden or _ending(outcome), "forbidden_write" if forbidden else None)
            os._exit(0)
        if self.mode == "rerun" and self.director is not None:
            self.director.end_rerun(_ending(outcome))
        stopped = str(outcome.stopped) if outcome.stopped is not None else None
        self.write(self.result(outcome, stopped))
        return 0  # a result was written, however the program ended; its exit handlers run

    def _keep_writes(self) -> None:
        """A perturbed program must not change the user's files."""
        if self.mode == "rerun":
            self._allow_writes = quarantine.redirect_writes((self.program.workspace, self.program.cwd))

    def still_compiling(self) -> bool:
        """Whether the time for compilation, which comes on top, has not been used up."""
        late = time.perf_counter() - self.deadline
        return late <= min(self.hub.compile_seconds, float(self.job.get("compiling_s") or 0.0))

    def stop(self, reason: str) -> NoReturn:
        """End the program here. Other threads may wait for this one for ever, so that is not left to the main one."""
        if threading.current_thread() is not threading.main_thread():
            self.write(self.result(None, reason))
            sys.stdout.flush()
            remove_temporary_folders()
            os._exit(0)
        raise StopProgram(reason)

    def _terminated(self, number: int, frame: Any) -> None:
        if os.getpid() != self.pid:  # a worker that the program has forked: it ends as it would without us
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        elif not self._written:
            self.write(self.result(None, "signal"))
        remove_temporary_folders()
        os._exit(0)

    def attach(self, wp: Any) -> None:
        """Install the hooks: called the moment the program has imported Warp."""
        try:
            self._attach(wp)
        except (AttributeError, ImportError, TypeError) as error:
            self.wp = self.watch = self.director = self.hub = self.tracker = None
            version = getattr(wp, "__version__", None) or getattr(getattr(wp, "config", None), "version", "?")
            raise UnsupportedWarp(
                f"Warp {version} ({getattr(wp, '__file__', '?')}) cannot be watched: {type(error).__name__}: {error}. "
                "Warp 1.13 to 1.19 are supported. Is this the package warp-lang?"
            ) from error

    def _attach(self, wp: Any) -> None:
        from . import hooks, names
        from .access import argument_access
        from .registry import LaunchArguments, Registry
        from .trace import Watch

        self.wp = wp
        origins = names.Origins(os.path.dirname(os.path.abspath(wp.__file__)), self.job["workspace"])
        registry = Registry(origins)
        self.watch = Watch(wp, origins, registry, LaunchArguments(argument_access))
        self.watch.parameter_expression = self.job.get("parameter")
        self.director = Director(self, registry, origins)
        if self.mode == "warp_tracker":
            from .warp_tracker import WarpTracker

            self.tracker = WarpTracker()
            self.tracker.install(wp, origins, registry, self.job)
        self.hub = hooks.install(wp, self.director, lambda: origins.located(origins.frame(3)))
        self.watch.captures = self.hub.graphs.spans
        self.director.prepare()
        gc.freeze()  # Warp and the probe stay to the end: the collector need not walk over them again and again
        device = self.job.get("device")
        if device and device != "cpu":
            wp.set_device(device)

    # -- a callable as the program -------------------------------------------------------------

    def _call_target(self) -> None:
        from . import callable_target

        forward: Any = self.program.load(self.job["target"]["forward"])
        make_inputs: Any = self.program.load(self.job["target"]["inputs"])
        inputs = callable_target.run(forward, make_inputs, lambda named: self.watch.leaves.arguments.update(named))
        if self.mode == "trace":
            self.gradcheck = callable_target.warp_gradcheck(
                forward, inputs, max(5.0, self.deadline - time.perf_counter())
            )

    # -- results -------------------------------------------------------------------------------

    def progress(self, stage: str, message: str, done: int | None = None, total: int | None = None) -> None:
        """One line for the server to read, at most two a second."""
        path = self.job.get("progress")
        now = time.perf_counter()
        if not path or (now - self._progress_at < PROGRESS_SECONDS and self._progress_at):
            return
        self._progress_at = now
        with open(path, "a", encoding="utf-8") as stream:
            stream.write(json.dumps({"stage": stage, "message": message, "done": done, "total": total}) + "\n")

    def write(self, result: dict[str, Any]) -> None:
        self._written = True
        self._allow_writes()
        os.makedirs(os.path.dirname(self.job["result"]), exist_ok=True)  # the program may have removed it
        if self.wp is None:
            with open(self.job["result"] + ".part", "w", encoding="utf-8") as stream:
                json.dump(result, stream)
            os.replace(self.job["result"] + ".part", self.job["result"])
            return
        from . import wire

        wire.write(self.job["result"], result if self.mode == "rerun" else wire.plain(result))
        self._keep_writes()  # the program's exit handlers are still to run

    def result(self, outcome: Any, stopped: str | None) -> dict[str, Any]:
        """The result object of this mode."""
        common = self._common(outcome, stopped)
        if self.mode == "trace":
            if self.watch is not None:
                from .summary import summary

                common.update(summary(self.watch, self.job.get("objective")))
            else:
                common.update(
                    parameters=[],
                    leaves=[],
                    objectives=[],
                    iterations=[],
                    structure=None,
                    nonfinite=None,
                    notes=[],
                    backward_calls=0,
                )
            common["gradcheck"] = self.gradcheck
            if common["error"] is not None and common["iterations"]:
                common["status"] = "completed"
                common["notes"].append(
                    f"the program ended with an error after {len(common['iterations'])} iterations: {common['error']['type']}: {common['error']['message']}"
                )
            elif common["status"] == "completed" and common["exit_code"] and not common["iterations"]:
                common["status"] = "failed"
            return common
        if self.director is not None:
            common.update(self.director.result())
        if common["error"] is not None and self.mode == "evaluate" and common.get("checks"):
            common["status"] = "completed"
        return common

    def _common(self, outcome: Any, stopped: str | None) -> dict[str, Any]:
        total = time.perf_counter() - self.started
        importing = self.importing.seconds or 0.0
        compiling = self.hub.compile_seconds if self.hub is not None else 0.0
        error = (
            self._describe(outcome.exception)
            if outcome is not None and outcome.exception is not None and outcome.exit_code
            else None
        )
        status = "stopped" if stopped in ("budget", "signal") else "failed" if error is not None else "completed"
        overridden = self.program.overrides.describe()
        unapplied = None if error is not None or stopped else self.program.overrides.unapplied()
        if unapplied:
            status, error = "failed", self._describe(unapplied[0])
        return {
            "mode": self.mode,
            "status": status,
            "stopped_because": stopped,
            "warp_version": getattr(self.wp, "__version__", None)
            or getattr(getattr(self.wp, "config", None), "version", None),
            "python_version": ".".join(str(n) for n in sys.version_info[:3]),
            "python": sys.executable,
            "numpy_version": getattr(sys.modules.get("numpy"), "__version__", None),
            **self._devices(),
            "seconds": {
                "import": importing,
                "compile": compiling,
                "run": max(0.0, total - importing - compiling),
                "total": total,
            },
            "memory_bytes": forking.peak_bytes(),
            "exit_code": outcome.exit_code if outcome is not None else None,
            "error": error,
            "overrides": overridden,
            "events": self.hub.count if self.hub is not None else 0,
            "loaded_files": _loaded_files(self.job),
            **({"inputs": self.inputs.record(self._kernel_cache())} if self.inputs is not None else {}),
        }

    def _kernel_cache(self) -> str | None:
        return getattr(getattr(self.wp, "config", None), "kernel_cache_dir", None)

    def _describe(self, error: BaseException) -> dict[str, Any]:
        return describe_failure(
            error, workspace=self.program.workspace, script=self.program.script, cwd=self.program.cwd
        )

    def _devices(self) -> dict[str, Any]:
        wp = self.wp
        if wp is None or wp._src.context.runtime is None:
            return {"device": None, "devices": [], "uses_cuda": False}
        return {
            "device": str(wp.get_device()),
            "devices": [str(d) for d in wp.get_devices()],
            "uses_cuda": bool(self.watch is not None and self.watch.registry.uses_cuda),
        }


class UnsupportedWarp(Exception):
    """The module named `warp` lacks what the hooks need: another version, or another package."""


class Director:
    """The listener that hooks talk to: passes events to whoever listens, stops at the planned moments."""

    def __init__(self, session: Session, registry: Any, origins: Any):
        self.session = session
        self.registry = registry
        self.origins = origins
        self.inner: Any = session.watch
        self.measurement: Any = None
        self.engine: Any = None
        self.checks: list[dict[str, Any]] = []
        self.ledgers: list[dict[str, Any]] = []
        self.reply: dict[str, Any] | None = None
        self._pending: list[dict[str, Any]] = []

    def prepare(self) -> None:
        """Set up what the mode needs once the hooks are in place."""
        job = self.session.job
        if self.session.mode == "trace":  # nobody else will listen: two calls less for every event
            self.before = self._before_watching  # type: ignore[method-assign]
            self.created, self.after = self.inner.created, self.inner.after  # type: ignore[method-assign]
        if self.session.mode in ("evaluate", "ledger"):
            self._pending = sorted(job["plan"]["iterations"], key=lambda p: p["pause"])
            for plan in self._pending:
                reported = [plan["reported"]] if plan.get("reported") else []
                self._want(
                    [*plan["parameters"], *plan["early_losses"].values(), *plan["loss_before"].values(), *reported],
                    plan["outputs"],
                )
        elif self.session.mode == "rerun":
            from . import wire
            from .evaluate import Measurement

            request = wire.unpack(job["request"])
            self._want(
                [
                    *request["perturb"],
                    *request["wanted"],
                    *request["early_losses"].values(),
                    *request["loss_before"].values(),
                ],
                request["outputs"],
            )
            watch = self.session.watch if request["kind"] == "reference" else None
            measurement = Measurement(request, self.registry, self.origins, 0, self._answer_rerun, watch)
            measurement.hub = self.session.hub
            self.inner = measurement

    def _want(self, parameters: list[dict[str, Any]], outputs: dict[Any, list[int]]) -> None:
        for item in parameters:
            self.registry.wanted.setdefault(item["serial"], None)
        for serials in outputs.values():
            for serial in serials:
                self.registry.wanted.setdefault(serial, None)

    def _answer_rerun(self, reply: dict[str, Any]) -> None:
        self.reply = reply
        self.session.stop("enough")

    def end_rerun(self, ending: str | None) -> None:
        """The program ended; a reference may end there, an evaluation has then failed."""
        if self.reply is None:
            with contextlib.suppress(StopProgram):  # how `_answer_rerun` leaves the user's stack
                self.inner.program_ended(ending)

    # -- hook interface ------------------------------------------------------------------------

    def created(self, array: Any) -> None:
        self.inner.created(array)

    def recorded_function(self, tape: Any, function: Callable[..., Any], arrays: Any) -> None:
        self.inner.recorded_function(tape, function, arrays)

    def before(self, event: Any) -> None:
        if self.measurement is None:
            if event.index % STOP_CHECK_EVENTS == 0:
                self._stop_in_time()
            while self._pending and self._pending[0]["pause"] <= event.index and self.measurement is None:
                plan = self._pending.pop(0)
                if self.session.mode == "ledger":
                    self._keep_ledger(plan)
                else:
                    self._check(plan, event)
        self.inner.before(event)

    def _before_watching(self, event: Any) -> None:
        """`before` of a run that only watches."""
        if event.index % STOP_CHECK_EVENTS == 0:
            self._stop_in_time()
        if event.kind == "backward":
            self.session.progress("trace", f"watching: backward call {len(self.session.watch.backwards) + 1}")
        self.inner.before(event)

    def _stop_in_time(self) -> None:
        if time.perf_counter() > self.session.deadline and not self.session.still_compiling():
            self.session.stop("budget")

    def after(self, event: Any) -> None:
        self.inner.after(event)

    # -- measuring -----------------------------------------------------------------------------

    def _check(self, plan: dict[str, Any], event: Any) -> None:
        """Run the whole check of one iteration from this moment; in a forked child, become its listener."""
        from .check import Options, check_iteration
        from .evaluate import ForkEngine, InChild
        from .evaluator import seconds_of

        session, left = self.session, len(self._pending) + 1
        remaining = session.deadline - time.perf_counter()
        ends = time.perf_counter() + remaining / left
        limit = max(CHILD_SECONDS, CHILD_FACTOR * float(session.job["plan"].get("run_seconds") or 1.0))
        workers = forking.at_once(session.job["plan"].get("memory_bytes"))
        self.engine = ForkEngine(session.hub, session.watch, min(limit, max(1.0, remaining)), workers)
        options = Options(
            **session.job.get("options", {}),
            iteration_seconds=float(session.job["plan"].get("iteration_seconds") or 0.0),
            remaining=lambda: ends - time.perf_counter(),
        )
        if plan["ops"] >= LONG_TAPE and options.iteration_seconds >= options.sparing_from:
            self.engine.shape_of = plan
        generator = check_iteration(plan, options)
        done = 0
        try:
            requests = next(generator)
            while True:
                replies = self.engine.evaluate(requests)
                self._keep_shapes(plan, replies)
                done += len(requests)
                session.progress("evaluate", f"iteration {plan['iteration']}: {done} evaluations", done, None)
                requests = generator.send(replies)
        except InChild as child:
            self.measurement = self.inner = child.measurement
            child.measurement.hub = session.hub
            self.created = (child.measurement.watch or self.registry).created  # type: ignore[method-assign]
            return
        except StopIteration as finished:
            for check in finished.value:
                check.update(seconds_of(self.engine.seconds))
            self.checks.extend(finished.value)
        if not self._pending:
            self.session.stop("enough")

    def _keep_shapes(self, plan: dict[str, Any], replies: list[dict[str, Any]]) -> None:
        """What a reference has learnt of a long tape, for the ledger that may follow."""
        for shape in (reply.pop("shape", None) for reply in replies):
            if shape is not None:
                from .ledger_mode import SHAPE_FILE

                path = os.path.join(self.session.job["evidence"], SHAPE_FILE.format(plan["iteration"]))
                with open(path, "w", encoding="utf-8") as stream:
                    json.dump(shape, stream, default=list)

    def _keep_ledger(self, plan: dict[str, Any]) -> None:
        """Make the ledger of one iteration; in a forked child, become the listener of its run."""
        from .ledger_mode import Ended, LedgerRun

        try:
            self.ledgers.append(LedgerRun(self.session, self, plan).run())
        except Ended as child:
            self.measurement = self.inner = self.session.hub.listener = child.recorder  # nobody else listens
            self.session.hub.creations = child.recorder.creations
            return
        if not self._pending:
            self.session.stop("enough")

    def result(self) -> dict[str, Any]:
        if self.session.mode == "ledger":
            kept = [entry for entry in self.ledgers if not entry.get("failed")]
            failed = next((entry for entry in self.ledgers if entry.get("failed")), {})
            return {
                "ledgers": kept,
                "verdict": None,
                "reason": failed.get("reason"),
                "message": failed.get("message", ""),
            }
        if self.session.mode == "warp_tracker":
            return self.session.tracker.result() if self.session.tracker is not None else {}
        if self.session.mode == "rerun":
            from . import wire

            return {"reply": wire.pack(self.reply) if self.reply is not None else None}
        from .check import note_updates
        from .reported import compare_reported

        note_updates(self.checks)
        compare_reported(self.checks)
        missing = [p["iteration"] for p in self._pending]
        return {"engine": "fork", "checks": self.checks, "iterations_not_reached": missing}


def _ending(outcome: Any) -> str | None:
    if outcome.exception is not None:
        return f"{type(outcome.exception).__name__}: {outcome.exception}"
    return f"the program left with exit code {outcome.exit_code}" if outcome.exit_code else None


def _loaded_files(job: dict[str, Any]) -> list[str]:
    """Files of the workspace that the program loaded (installed packages inside it are not the user's)."""
    workspace = os.path.realpath(job["workspace"]) + os.sep
    found = {job["target"]["script"]} if job["target"].get("script") else set()
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and os.path.realpath(file).startswith(workspace) and "site-packages" not in file:
            found.add(os.path.abspath(file))
    return sorted(f for f in found if f)


def remove_temporary_folders() -> None:
    """Those of `tempfile.TemporaryDirectory` (Warp compiles in one): an exit without handlers would leave them."""
    registry: dict[Any, Any] = getattr(weakref.finalize, "_registry", {})
    remove = getattr(tempfile.TemporaryDirectory, "_cleanup", None)
    for finalizer, info in list(registry.items()):
        if info.func == remove:
            finalizer()


def _soften_hard_exits() -> None:
    """The program's own `os._exit` ends it as `sys.exit` would: the result is still to be written."""
    leave, process, probe = os._exit, os.getpid(), os.path.dirname(os.path.abspath(__file__))

    def softened(status: int) -> NoReturn:
        if os.getpid() == process and not sys._getframe(1).f_code.co_filename.startswith(probe):
            raise SystemExit(status)
        leave(status)

    os._exit = softened

"""What every operation does the same way: check the request, open the evidence, run the probe, close the evidence."""

from __future__ import annotations

import json
import os
import platform
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, JsonValue

from warp_debug_gradients import __version__, worker
from warp_debug_gradients.catalogue import described
from warp_debug_gradients.errors import UsageError
from warp_debug_gradients.evidence import Evidence
from warp_debug_gradients.interpreter import choose_interpreter
from warp_debug_gradients.operations import traces
from warp_debug_gradients.operations.command import command_line
from warp_debug_gradients.operations.compiler import add_compiler_text
from warp_debug_gradients.operations.perform import call_started
from warp_debug_gradients.runs import offer
from warp_debug_gradients.schemas import Interpreter, Result, ScriptError, Target
from warp_debug_gradients.versions import support_note
from warp_debug_gradients.worker import OnProgress, ProbeOutcome, Progress
from warp_debug_gradients.workspace import Workspace

R = TypeVar("R", bound=Result)
T = TypeVar("T", bound=Target)
COMPILING_SHARE = 0.4  # of the time, for kernels that the first run has to compile
MARGIN_S = 1.0  # between the probe's own budget and the moment we stop it


class Measurement(Generic[T]):
    """One operation in progress: where it runs, how long it may still take, where its evidence goes."""

    def __init__(self, operation: str, request: T, workspace: Workspace, on_progress: OnProgress | None) -> None:
        self.operation = operation
        self.request = request
        self.workspace = workspace
        self.on_progress = on_progress
        self.started = call_started()
        self.notes: list[str] = []
        self.target = _resolve_target(request, workspace)
        refuse_unset_variables(request)
        self.cwd = workspace.folder(request.cwd, "working folder")
        self.interpreter: Interpreter = choose_interpreter(workspace, request.python)
        self.evidence = Evidence.create(workspace, operation)
        job = {**job_record(operation, request, workspace), "interpreter": self.interpreter.model_dump()}
        self.evidence.write_json("job.json", job)
        self.evidence.write_rerun(command_line(operation, request, workspace, self.interpreter.path))
        self.evidence.snapshot_sources(self.target_files)

    @property
    def target_files(self) -> list[Path]:
        """The files that the request names."""
        named = [self.target["script"], *(self.target[k] for k in ("forward", "inputs"))]
        return [Path(n.rsplit(":", 1)[0] if ":" in n[2:] else n) for n in named if n]

    @property
    def elapsed(self) -> float:
        """Seconds since the call came in."""
        return time.monotonic() - self.started

    @property
    def remaining(self) -> float:
        """Seconds left of the caller's budget."""
        return self.request.timeout_s - self.elapsed

    async def trace(self, share: float, again: bool = False) -> ProbeOutcome:
        """The run that only watches, with a share of the time, and more for the kernels that it has to compile.

        Those after it find them in Warp's cache, and need not take that time again. That of an earlier call is taken
        where it would be the same run, unless it is wanted `again`.
        """
        kept = None if again else traces.recall(self._key(), self.remaining * share)
        return self._taken_over(kept) if kept else await self.probe("trace", share=share, compiling=COMPILING_SHARE)

    def _key(self) -> str:
        return traces.key_of(self.job(), self.interpreter.path)

    def _taken_over(self, kept: traces.Kept) -> ProbeOutcome:
        """An earlier trace, with its files beside this run's own."""
        for name in ("trace.json", "output.txt"):
            if (kept.folder / name).is_file():
                shutil.copy(kept.folder / name, self.evidence.folder / name)
        found = self.relative_files(json.loads((self.evidence.folder / "trace.json").read_text()))
        output = self.evidence.folder / "output.txt"
        self.notes.append(
            f"The run that watches the program was not repeated: it is that of {kept.folder.name}, since which nothing "
            "that the program read has changed. Everything measured is of this call."
        )
        said = output.read_text(errors="replace") if output.is_file() else ""
        return ProbeOutcome(found, 0, False, said, 0.0)

    async def probe(
        self, mode: str, *, share: float = 1.0, compiling: float = 0.0, name: str | None = None, **extra: Any
    ) -> ProbeOutcome:
        """Runs the probe once, in `mode`, with a share of the time that is left, and one more if it compiles kernels."""
        budget, more = max(self.remaining * share, 2.0), max(self.remaining, 0.0) * compiling
        outcome = await worker.run_probe(
            self.interpreter.path,
            {**self.job(), "mode": mode, "budget_s": max(budget - MARGIN_S, 1.0), "compiling_s": more, **extra},
            self.evidence.folder,
            name=name or mode,
            deadline_s=budget + more,
            on_progress=self._report if self.on_progress else None,
            output="output.txt" if mode == "trace" else f"{name or mode}.output.txt",
        )
        if outcome.result is not None:
            if mode == "trace" and name is None:
                traces.remember(self._key(), self.evidence.folder, outcome.result, budget)
            outcome.result.update(self.relative_files(outcome.result))
        return outcome

    async def _report(self, progress: Progress) -> None:
        """Hands progress on, with the time since the call came in: it must not go back from probe to probe."""
        if self.on_progress:
            await self.on_progress(replace(progress, elapsed_s=self.elapsed))

    def job(self) -> dict[str, Any]:
        """The part of the job file that all modes share."""
        return {
            "target": self.target,
            "args": self.request.args,
            "cwd": str(self.cwd),
            "workspace": str(self.workspace.root),
            "overrides": self.request.overrides,
            "env": self.request.env,
            "device": self.request.device,
            "parameter": self.request.parameter,
            "objective": self.request.objective,
            "evidence": str(self.evidence.folder),
        }

    def relative_files(self, value: Any) -> Any:
        """The probe's JSON with every `file` as the user would write it, and text that does no harm to a terminal.

        Opaque plans are handed back as they are.
        """
        return self._relative(value)

    def _relative(self, value: JsonValue) -> JsonValue:
        if isinstance(value, dict):
            return {
                k: v
                if k == "plan"
                else self.workspace.relative(v)
                if k == "file" and isinstance(v, str) and v
                else self._relative(v)
                for k, v in value.items()
            }
        if isinstance(value, list):
            return [self._relative(v) for v in value]
        return worker.harmless(value) if isinstance(value, str) else value

    def base(self) -> dict[str, Any]:
        """The fields that every result of this measurement has."""
        return {
            "run_id": self.evidence.run_id,
            "operation": self.operation,
            "evidence": self.evidence.relative,
            "interpreter": self.interpreter,
        }

    def finish(self, result: R) -> R:
        """Stores the result, and enters it in the index."""
        result.elapsed_s = round(self.elapsed, 3)
        result.notes += self.notes
        if note := support_note(result.warp_version):
            result.notes.insert(0, note)
        if said := offer(self.workspace):
            result.notes.append(said)
        for cause in result.causes:
            described(cause)
        store(self.evidence, self.request, result)
        return result


def job_record(operation: str, request: BaseModel, workspace: Workspace) -> dict[str, Any]:
    """What job.json says of every run."""
    return {
        "operation": operation,
        "request": request.model_dump(),
        "workspace": str(workspace.root),
        "versions": {"warp-debug-gradients": __version__, "server_python": platform.python_version()},
        "platform": platform.platform(),
    }


def store(evidence: Evidence, request: BaseModel, result: Result) -> None:
    """result.json, and the line in the index."""
    stored = result.model_dump(mode="json")
    evidence.write_json("result.json", stored)
    entry = {k: stored[k] for k in ("operation", "status", "verdict", "reason", "outcome") if k in stored}
    named = request.model_dump(include={"script", "module", "forward", "args", "overrides"})
    evidence.append_index({**entry, **named})


def _resolve_target(request: Target, workspace: Workspace) -> dict[str, str | None]:
    """The `target` of the job file, with paths checked and made absolute."""
    named = [k for k in ("script", "module", "forward") if getattr(request, k)]
    if len(named) != 1:
        given = " and ".join(named) or "none of them"
        raise UsageError(
            f"Name exactly one target: script, module or forward; the request has {given}. "
            "A script is a path relative to the workspace, such as train.py."
        )
    if request.script and request.script.endswith(".ipynb"):
        raise UsageError(
            f"{request.script} is a notebook, not a script. Save its cells as one "
            f"(jupyter nbconvert --to script {request.script}) and name the .py file."
        )
    if request.inputs and not request.forward:
        raise UsageError("inputs goes with forward=FILE.py:FUNCTION only. For a script, drop it.")
    return {
        "script": str(workspace.file(request.script, "script")) if request.script else None,
        "module": request.module,
        "forward": _resolve_callable(request.forward, workspace, "forward"),
        "inputs": _resolve_callable(request.inputs, workspace, "inputs"),
    }


def refuse_unset_variables(request: Target) -> None:
    """A variable that is named but not set would be missed in silence."""
    unset = [name for name in request.env if name not in os.environ]
    if unset:
        raise UsageError(
            f"The environment variable {unset[0]} is not set where this runs (MCP: set it in the server's configuration)."
        )


def _resolve_callable(named: str | None, workspace: Workspace, what: str) -> str | None:
    if not named:
        return None
    file, colon, function = named.rpartition(":")
    if not colon or not function.replace(".", "_").isidentifier():
        raise UsageError(f"{what}={named!r} should read FILE.py:FUNCTION, such as model.py:rollout.")
    return f"{workspace.file(file, what + ' file')}:{function}"


def script_error(outcome: ProbeOutcome, measurement: Measurement[Any]) -> ScriptError:
    """Why the user's program does not run: the probe's finding, or how the process died."""
    interpreter, workspace = measurement.interpreter, measurement.workspace
    found = outcome.trace.get("error")
    if found:
        error = ScriptError.model_validate({"type": "Error", "message": "", **found})
        error.message = shortened(error.message)
        if (error.missing_module or "").split(".")[0] == "warp" and not error.advice:
            error.advice = f"Warp is not installed for {interpreter.path} ({interpreter.why}). Pass --python."
        loaded = [workspace.root / f for f in outcome.trace.get("loaded_files") or []]
        error = add_compiler_text(error, outcome.output, loaded)
        if error.named is not None:
            error.named.file = workspace.relative(error.named.file)
        return error
    last = [shortened(line, 300) for line in outcome.output.splitlines() if line.strip()][-3:]
    return ScriptError(
        type="ProcessDied",
        message=f"The Python process ended without a report: {outcome.death}."
        + (f" The last it printed (its own words): {' | '.join(map(repr, last))}" if last else ""),
        advice="Run the script by itself with the same interpreter; a crash in native code (index out of bounds, "
        "out of memory) or os._exit ends the process. warp.config.mode = 'debug' turns bounds checks on.",
    )


def refuse_unusable(outcome: ProbeOutcome, request: Target) -> None:
    """Raises where the *request* is wrong, as only the run could show: an override or a parameter that is not there."""
    trace = outcome.trace
    error = trace.get("error") or {}
    if error.get("type") == "OverrideError":
        raise UsageError(
            f"{first_line(error.get('message'))}. Nothing was measured; the program was not run to its end."
        )
    unnamed = trace.get("status") == "completed" and trace.get("backward_calls") and not trace.get("parameters")
    if request.parameter and unnamed:
        leaves = ", ".join(leaf["name"] for leaf in (trace.get("leaves") or [])[:10]) or "none"
        raise UsageError(
            f"The parameter {request.parameter!r} is no array that a tape reads. Arrays with gradients on the tapes: "
            f"{leaves}. Name one of them, or leave the parameter out to let it be found."
        )


def shortened(text: str, most: int = 2000) -> str:
    """A long text by its beginning and its end."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]} [... {len(text) - most} characters ...] {text[-half:]}"


def first_line(text: Any) -> str:
    """An error's own sentence."""
    return (str(text or "").strip().splitlines() or [""])[0].rstrip(".")

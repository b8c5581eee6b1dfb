"""Runs the probe in the user's interpreter: limits, progress, cancellation; no process is left behind.

Between us and the probe stands the guardian (guard.py), which watches the probe and everything below it, and
ends all of it when the run ends, when a limit is passed, when we say so, or when we are gone.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import anyio
import psutil
from pydantic import JsonValue

from warp_debug_gradients.environment import probe_environment
from warp_debug_gradients.errors import EvidenceLost, InterpreterError
from warp_debug_gradients.limits import Limits
from warp_debug_gradients.records import Evaluation, Ledgers, Trace

BOOTSTRAP = Path(__file__).parent / "probe" / "bootstrap.py"
GUARD = Path(__file__).parent / "guard.py"
MARK = "WARP_DEBUG_GRADIENTS_RUN"  # in the environment of a run's processes: which run they belong to
GRACE_S = 2.0  # between SIGTERM ("write what you know") and SIGKILL
GUARD_S = 5.0  # the guardian has to clear up in; else it has been stopped or killed, and we do it
POLL_S = 0.2
HEARTBEAT_S = 2.0
LARGEST_RESULT = 512_000_000  # bytes
LARGEST_PROGRESS = 1_000_000  # bytes read at a time


@dataclass(frozen=True)
class Progress:
    """Where a measurement is."""

    stage: str
    message: str
    elapsed_s: float
    done: int | None = None
    total: int | None = None


OnProgress = Callable[[Progress], Awaitable[None]]


@dataclass(frozen=True)
class ProbeOutcome:
    """What came back of one probe process."""

    result: dict[str, Any] | None
    returncode: int | None
    timed_out: bool
    output: str
    seconds: float
    limit: str | None = None  # the limit that ended it, in words
    peak_bytes: int | None = None

    @property
    def trace(self) -> Trace:
        """The result of mode `trace`."""
        return cast(Trace, self.result or {})

    @property
    def evaluation(self) -> Evaluation:
        """The result of mode `evaluate`, and of the rerun engine."""
        return cast(Evaluation, self.result or {})

    @property
    def ledgers(self) -> Ledgers:
        """The result of mode `ledger`."""
        return cast(Ledgers, self.result or {})

    @property
    def death(self) -> str | None:
        """How the process died, if it wrote no result."""
        if self.result is not None:
            return None
        if self.limit:
            return f"it was stopped because {self.limit}"
        if self.timed_out:
            return "it was stopped when its time ran out"
        if self.returncode is not None and self.returncode < 0:
            with suppress(ValueError):
                return f"it was killed by {signal.Signals(-self.returncode).name}"
        return f"it exited with code {self.returncode} before it could report"


async def run_probe(
    python: str,
    job: dict[str, Any],
    folder: Path,
    *,
    name: str,
    deadline_s: float,
    on_progress: OnProgress | None = None,
    output: str = "output.txt",
    bootstrap: Path | None = None,
) -> ProbeOutcome:
    """Starts `python bootstrap.py JOB` and waits for its result, the deadline, or our own cancellation."""
    result_path, progress_path = folder / f"{name}.json", folder / f"{name}.progress.jsonl"
    job_path = folder / f"{name}.job.json"
    job = {**job, "result": str(result_path), "progress": str(progress_path)}
    try:
        job_path.write_text(json.dumps(job, indent=1))
    except OSError as error:
        raise EvidenceLost(
            f"The evidence folder {folder} cannot be written ({error.strerror}). If the script removes or replaces "
            "files there, keep it from doing so: nothing can be measured without."
        ) from error

    started = time.monotonic()
    run = Run([python, str(bootstrap or BOOTSTRAP), str(job_path)], job, folder / output)
    watcher: asyncio.Task[None] | None = None
    timed_out = False
    try:
        await run.start()
        watcher = asyncio.create_task(_watch(progress_path, on_progress, name, started))
        if not await run.ended_within(deadline_s):
            timed_out = True
            run.ask_to_end()
            await run.ended_within(GRACE_S)
    finally:
        with anyio.CancelScope(shield=True):
            await run.end()
        if watcher is not None:
            watcher.cancel()
    report = run.report
    if "not_started" in report:
        raise InterpreterError(
            f"The interpreter {python} does not start ({report['not_started']}). "
            "Pass --python with the Python that has Warp."
        )
    return ProbeOutcome(
        result=_read(result_path),
        returncode=report.get("returncode"),
        timed_out=timed_out,
        output=_text(folder / output),
        seconds=time.monotonic() - started,
        limit=_limit(report.get("limit")),
        peak_bytes=report.get("peak_bytes"),
    )


class Run:
    """One command under its guardian."""

    def __init__(self, command: list[str], job: dict[str, Any], output: Path) -> None:
        self.mark = secrets.token_hex(8)
        self.environment = {**probe_environment(job.get("env") or ()), MARK: self.mark}
        self.spec = {
            "command": command,
            "cwd": job["cwd"],
            "output": str(output),
            "limits": Limits.from_environment().as_dict(),
        }
        self.guard: asyncio.subprocess.Process | None = None
        self.report: dict[str, Any] = {}
        self.reading: asyncio.Task[bytes] | None = None

    async def start(self) -> None:
        """Starts the guardian, which starts the command."""
        self.guard = await asyncio.create_subprocess_exec(
            sys.executable,
            str(GUARD),
            json.dumps(self.spec),
            env=self.environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        assert self.guard.stdout is not None
        self.reading = asyncio.create_task(self.guard.stdout.read())

    async def ended_within(self, seconds: float) -> bool:
        """Whether the guardian has reported, waiting at most so long."""
        assert self.reading is not None
        done, _ = await asyncio.wait([self.reading], timeout=max(seconds, 0.0))
        return bool(done)

    def ask_to_end(self) -> None:
        """The command gets SIGTERM: it may write what it knows."""
        assert self.guard is not None
        assert self.guard.stdin is not None
        with suppress(OSError):
            self.guard.stdin.write(b"t")

    async def end(self) -> None:
        """Ends what still runs, and takes the report. Does nothing twice."""
        if self.guard is None or self.reading is None:
            return
        assert self.guard.stdin is not None
        self.guard.stdin.close()  # "end everything"
        if await self.ended_within(GUARD_S):
            with suppress(ValueError):
                self.report = json.loads(self.reading.result())
        if not self.report:  # the program has stopped or killed its guardian
            with suppress(ProcessLookupError):
                self.guard.kill()
            self.reading.cancel()
            end_marked(self.mark)
        await self.guard.wait()


def end_marked(mark: str) -> None:
    """Kills the processes of a run by the mark in their environment."""
    for _ in range(100):
        found = [process for process in psutil.process_iter() if _has_mark(process, mark)]
        if not found:
            return
        for process in found:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(found, timeout=0.05)


def _has_mark(process: psutil.Process, mark: str) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARK) == mark
    except psutil.Error:
        return False


def _limit(passed: dict[str, Any] | None) -> str | None:
    """The limit that was passed, in words."""
    if not passed:
        return None
    used, allowed = passed["used"], passed["allowed"]
    if passed["what"] == "memory":
        return (
            f"its memory grew to {used / 1e9:.2f} GB, over the limit of {allowed / 1e9:.2f} GB "
            "(WARP_DEBUG_GRADIENTS_MEMORY_GB raises it)"
        )
    return f"it had {used} processes, over the limit of {allowed} (WARP_DEBUG_GRADIENTS_PROCESSES raises it)"


async def _watch(path: Path, on_progress: OnProgress | None, stage: str, started: float) -> None:
    """Hands on the probe's progress lines, and a heartbeat where there are none."""
    if on_progress is None:
        return
    position, last = 0, 0.0
    latest: dict[str, Any] = {}
    await on_progress(Progress(stage, "starting", time.monotonic() - started))
    while True:
        await asyncio.sleep(POLL_S)
        lines, position = _complete_lines(path, position)
        for line in lines:
            with suppress(ValueError):
                item: JsonValue = json.loads(line)
                latest = item if isinstance(item, dict) else latest
        elapsed = time.monotonic() - started
        if lines or elapsed - last >= HEARTBEAT_S:
            last = elapsed
            said = str(latest.get("stage") or stage)[:200], str(latest.get("message") or "")[:200]
            await on_progress(Progress(*said, elapsed, _count(latest.get("done")), _count(latest.get("total"))))


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _complete_lines(path: Path, position: int) -> tuple[list[bytes], int]:
    """The whole lines of a growing file after `position`, and the position after them."""
    try:
        with path.open("rb") as file:
            file.seek(position)
            new = file.read(LARGEST_PROGRESS)
    except OSError:
        return [], position
    end = new.rfind(b"\n") + 1
    return new[:end].splitlines(), position + end


def _text(output: Path) -> str:
    """What the program printed, as text that can do no harm to a terminal."""
    try:
        with output.open("rb") as file:
            return harmless(file.read().decode(errors="replace"))
    except OSError:
        return ""


def harmless(text: str) -> str:
    r"""Control characters, and those that turn the direction of text, spelt as Python does: \x1b."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(line if line.isprintable() else "".join(map(_visible, line)) for line in lines)


def _visible(character: str) -> str:
    if character.isprintable() or character == "\t":
        return character
    return character.encode("unicode_escape", "surrogatepass").decode()


def _read(path: Path) -> dict[str, Any] | None:
    try:
        if path.stat().st_size > LARGEST_RESULT:
            return None
        value: JsonValue = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None

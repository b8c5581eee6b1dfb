"""Runs the probe in the user's interpreter: limits, progress, cancellation; no process is left behind.

The probe starts in a session of its own, so that one signal reaches it and its forked evaluations. Should this
process die before it can send one, the probe's bootstrap sees to its own end (PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import anyio
import psutil

from warp_debug_gradients.environment import probe_environment
from warp_debug_gradients.errors import InterpreterError

BOOTSTRAP = Path(__file__).parent / "probe" / "bootstrap.py"
GRACE_S = 2.0  # between SIGTERM ("write what you know") and SIGKILL
OUTPUT_LIMIT = 4_000_000  # bytes of the script's output that are kept
SLACK = 1_000_000  # what may pass the limit before it is cut
POLL_S = 0.2
HEARTBEAT_S = 2.0


@dataclass(frozen=True)
class Progress:
    """Where a measurement is."""

    stage: str
    message: str
    elapsed_s: float
    done: int | None = None
    total: int | None = None


_running: set[asyncio.subprocess.Process] = set()

OnProgress = Callable[[Progress], Awaitable[None]]


@dataclass(frozen=True)
class ProbeOutcome:
    """What came back of one probe process."""

    result: dict[str, Any] | None
    returncode: int | None
    timed_out: bool
    output: str
    seconds: float

    @property
    def death(self) -> str | None:
        """How the process died, if it wrote no result."""
        if self.result is not None:
            return None
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
    job = {**job, "result": str(result_path), "progress": str(progress_path), "parent_pid": os.getpid()}
    job_path.write_text(json.dumps(job, indent=1))

    started = time.monotonic()
    process: asyncio.subprocess.Process | None = None
    watcher: asyncio.Task[None] | None = None
    timed_out = False
    strays: list[psutil.Process] = []
    with (folder / output).open("ab") as stream:
        try:
            process = await _start(python, bootstrap or BOOTSTRAP, job_path, job, stream)
            _running.add(process)
            watcher = asyncio.create_task(_watch(progress_path, folder / output, on_progress, name, started))
            try:
                await asyncio.wait_for(process.wait(), deadline_s)
            except asyncio.TimeoutError:
                timed_out = True
                strays = _descendants(process)
                _signal_group(process, graceful=True)
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(process.wait(), GRACE_S)
        finally:
            if process is not None:
                _end(process, strays)
                _running.discard(process)
                with anyio.CancelScope(shield=True):
                    await process.wait()
            if watcher is not None:
                watcher.cancel()
    assert process is not None  # else its start has raised
    return ProbeOutcome(
        result=_read(result_path),
        returncode=process.returncode,
        timed_out=timed_out,
        output=_text(folder / output),
        seconds=time.monotonic() - started,
    )


async def _start(
    python: str, bootstrap: Path, path: Path, job: dict[str, Any], output: BinaryIO
) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            python,
            str(bootstrap),
            str(path),
            cwd=job["cwd"],
            env=probe_environment(job.get("env") or ()),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    except OSError as error:
        raise InterpreterError(
            f"The interpreter {python} does not start ({error}). Pass --python with the Python that has Warp."
        ) from error


async def _watch(path: Path, output: Path, on_progress: OnProgress | None, stage: str, started: float) -> None:
    """Hands on the probe's progress lines, a heartbeat where there are none, and keeps the output small."""
    position, last = 0, 0.0
    latest: dict[str, Any] = {}
    if on_progress:
        await on_progress(Progress(stage, "starting", time.monotonic() - started))
    while True:
        await asyncio.sleep(POLL_S)
        _limit(output)
        lines, position = _complete_lines(path, position)
        for line in lines:
            with suppress(ValueError):
                item = json.loads(line)
                latest = item if isinstance(item, dict) else latest
        elapsed = time.monotonic() - started
        if on_progress and (lines or elapsed - last >= HEARTBEAT_S):
            last = elapsed
            said = str(latest.get("stage") or stage), str(latest.get("message") or "")
            await on_progress(Progress(*said, elapsed, latest.get("done"), latest.get("total")))


def _complete_lines(path: Path, position: int) -> tuple[list[bytes], int]:
    """The whole lines of a growing file after `position`, and the position after them."""
    if not path.is_file():
        return [], position
    with path.open("rb") as file:
        file.seek(position)
        new = file.read()
    end = new.rfind(b"\n") + 1
    return new[:end].splitlines(), position + end


def _limit(output: Path) -> None:
    """Cuts the script's output at its limit. It is open for appending there, so that writing goes on at the cut."""
    with suppress(OSError):
        if output.stat().st_size > OUTPUT_LIMIT + SLACK:
            with output.open("r+b") as file:
                file.truncate(OUTPUT_LIMIT)
                file.seek(0, os.SEEK_END)
                file.write(b"\n[output is cut here]\n")


def end_running_probes() -> None:
    """Ends every probe at once, from wherever it is called: for a server that has been told to go."""
    for process in list(_running):
        _end(process, [])


def _end(process: asyncio.subprocess.Process, strays: list[psutil.Process]) -> None:
    strays = strays + _descendants(process)
    _signal_group(process, graceful=False)
    for stray in strays:
        with suppress(psutil.Error):  # psutil knows a process by its start time, too: no reused pid is hit
            stray.kill()


def _descendants(process: asyncio.subprocess.Process) -> list[psutil.Process]:
    """The processes that the probe started; those that left its group for a session of their own, too."""
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.Error:
        return []


def _signal_group(process: asyncio.subprocess.Process, *, graceful: bool) -> None:
    if os.name == "posix":
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGTERM if graceful else signal.SIGKILL)
    elif process.returncode is None:
        with suppress(ProcessLookupError):
            process.terminate() if graceful else process.kill()


def _text(output: Path) -> str:
    _limit(output)
    return output.read_text(errors="replace")


def _read(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None

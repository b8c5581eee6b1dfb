"""doctor: can gradients be measured here, and if not, what is to be mended?"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from warp_debug_gradients import __version__, versions, worker
from warp_debug_gradients.errors import DebugGradientsError, InterpreterError
from warp_debug_gradients.evidence import HOME
from warp_debug_gradients.interpreter import choose_interpreter
from warp_debug_gradients.limits import Limits, calls_at_once
from warp_debug_gradients.records import part
from warp_debug_gradients.schemas.doctor import Check, DoctorResult
from warp_debug_gradients.worker import ProbeOutcome
from warp_debug_gradients.workspace import Workspace

LOOK = Path(__file__).parents[1] / "probe" / "doctor.py"
TIMEOUT_S = 120.0  # a first compilation on a GPU takes long
CLIENT_TIMEOUTS = (
    "Codex 60 s (tool_timeout_sec), clients on the TypeScript SDK 60 s unless progress extends it, "
    "Claude Code none to speak of (MCP_TOOL_TIMEOUT)"
)


async def doctor(workspace: Workspace, python: str | None = None) -> DoctorResult:
    """Looks at everything a measurement needs."""
    checks = [_server(), _workspace(workspace), _guardian()]
    try:
        interpreter = choose_interpreter(workspace, python)
        outcome = await _look(interpreter.path, workspace)
        checks += _interpreter(outcome, interpreter.path, interpreter.why)
        checks.append(_limits())
    except DebugGradientsError as error:
        name = "interpreter" if isinstance(error, InterpreterError) else error.code
        checks.append(Check(name=name, status="fault", found=error.message, mend="See there."))
    checks.append(
        Check(
            name="time-outs of clients", status="ok", found=f"a call takes at most timeout_s = 50 s; {CLIENT_TIMEOUTS}"
        )
    )
    return DoctorResult(checks=checks)


async def _look(python: str, workspace: Workspace) -> ProbeOutcome:
    with tempfile.TemporaryDirectory(prefix="warp-debug-gradients-doctor-") as folder:
        job = {"cwd": str(workspace.root)}
        return await worker.run_probe(
            python, job, Path(folder), name="look", deadline_s=TIMEOUT_S, bootstrap=LOOK, on_progress=None
        )


def _server() -> Check:
    found = f"warp-debug-gradients {__version__} on Python {platform.python_version()} ({sys.executable})"
    return Check(name="server", status="ok", found=found)


def _workspace(workspace: Workspace) -> Check:
    home = workspace.root / HOME
    if home.is_symlink() and not home.resolve().is_relative_to(workspace.root):
        mend = f"Remove the link {home}."
        return Check(name="workspace", status="fault", found=f"{home} leads out of {workspace.root}", mend=mend)
    writable = os.access(home if home.exists() else workspace.root, os.W_OK)
    return Check(
        name="workspace",
        status="ok" if writable else "fault",
        found=f"{workspace.root}, {'writable' if writable else 'not writable: evidence cannot be kept'}",
        mend=None if writable else "Name a folder you may write: --workspace, or WARP_DEBUG_GRADIENTS_WORKSPACE.",
    )


def _guardian() -> Check:
    if sys.platform.startswith("linux"):
        return Check(name="clean-up", status="ok", found="processes that daemonise are ended with the run (subreaper)")
    return Check(
        name="clean-up",
        status="warning",
        found=f"{platform.system()} has no subreaper: a process that daemonises at once may outlive the run",
    )


def _interpreter(outcome: ProbeOutcome, path: str, why: str) -> Iterator[Check]:
    found: dict[str, Any] = outcome.result or {}
    error = found.get("error") or outcome.death
    if "python" not in found:
        mend = "Start it by hand, or name another with --python."
        yield Check(name="interpreter", status="fault", found=f"{path} ({why}): {error}", mend=mend)
        return
    old = tuple(map(int, found["python"].split("."))) < (3, 10)
    yield Check(
        name="interpreter",
        status="fault" if old else "ok",
        found=f"Python {found['python']}, {path} ({why})",
        mend="Python 3.10 or later is needed." if old else None,
    )
    yield from _warp(found, error, path)
    if "devices" in found:
        yield from _devices(found, error)
    yield _fork(found)


def _warp(found: dict[str, Any], error: str | None, path: str) -> Iterator[Check]:
    if "numpy" not in found or "warp_file" not in found:
        missing = "warp-lang" if "numpy" in found else "numpy"
        mend = f"{path} -m pip install {missing}, or name the Python that has it with --python."
        yield Check(name=missing, status="fault", found=str(error), mend=mend)
        return
    version = found.get("warp")
    note = versions.support_note(version)
    where = f"{version or '?'}, imported in {found.get('import_s', 0):.1f} s from {found['warp_file']}"
    yield Check(name="warp", status="warning" if note else "ok", found=where, mend=note)
    if "devices" not in found:
        mend = (
            "Is the module that was imported NVIDIA Warp (package warp-lang), and does `import warp; warp.init()` work?"
        )
        yield Check(name="warp", status="fault", found=f"it does not start: {error}", mend=mend)
    for behaviour in versions.differences(version):
        found_here = f"Warp {version}: {behaviour.before}"
        yield Check(
            name="known behaviour",
            status="warning",
            found=found_here,
            mend=f"From Warp {behaviour.since_version} on {behaviour.after}.",
        )


def _devices(found: dict[str, Any], error: str | None) -> Iterator[Check]:
    yield Check(name="devices", status="ok", found=", ".join(found["devices"]) or "none")
    if found.get("cache"):
        writable = bool(found.get("cache_writable"))
        yield Check(
            name="kernel cache",
            status="ok" if writable else "fault",
            found=f"{found['cache']}{'' if writable else ' is not writable'}",
            mend=None if writable else "Set WARP_CACHE_PATH to a folder you may write.",
        )
    for device, gradient in part(found, "gradients").items():
        right = gradient["value"] == [2.0, 2.0]
        yield Check(
            name=f"compiler on {device}",
            status="ok" if right else "fault",
            found=f"a kernel and its gradient in {gradient['seconds']:.1f} s"
            + ("" if right else f", and the gradient is wrong: {gradient['value']} instead of [2.0, 2.0]"),
            mend=None if right else "Clear the kernel cache and install warp-lang again.",
        )
    if error:
        yield Check(name="compiler", status="fault", found=error, mend="Clear the kernel cache; is the disk full?")


def _fork(found: dict[str, Any]) -> Check:
    if not found["fork"]:
        text = "not on this system: every evaluation is a new run of the script (slower, same numbers)"
        return Check(name="fork", status="warning", found=text)
    cuda = any(device.startswith("cuda") for device in found.get("devices") or ())
    text = "available" + ("; programs on CUDA cannot be forked and are run anew for each evaluation" if cuda else "")
    return Check(name="fork", status="ok", found=f"{text}; {os.cpu_count()} cores")


def _limits() -> Check:
    limits = Limits.from_environment()
    found = (
        f"memory {limits.memory_bytes / 1e9:.1f} GB, {limits.processes} processes, output "
        f"{limits.output_bytes / 1e6:g} MB, one file {limits.file_bytes / 1e9:g} GB, {calls_at_once()} calls at once"
    )
    return Check(name="limits of a run", status="ok", found=found)

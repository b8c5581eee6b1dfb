"""The guardian: a small process between the server and the probe that lets nothing of a run outlive it.

    python guard.py SPEC.json-text        SPEC: {"command", "cwd", "output", "limits"}

It starts the command in a session of its own and watches the whole tree below it: memory, number of processes,
size of the output. On Linux it is the tree's "subreaper": a process that daemonises does not leave the tree, it
becomes the guardian's own child. Whatever ends the run (the command itself, a limit, the server's word, or the
death of the server, seen as the end of stdin) ends with every process of the tree killed and reaped.

stdin: "t" asks the command to end (SIGTERM, it may write what it knows); end of file ends everything at once.
stdout: one JSON object at the end: {"returncode", "limit", "peak_bytes", "killed"} or {"not_started"}.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    del sys.path[0]  # our own folder: its names are not for the standard library to find

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from psutil import Process

PR_SET_CHILD_SUBREAPER = 36  # <linux/prctl.h>
SHORTEST_POLL_S, LONGEST_POLL_S = 0.1, 2.0
POLL_SHARE = 30  # a look at the tree may cost a thirtieth of the time between two looks
MARKER = b"\n[... output is cut here: the first and the last part are kept ...]\n"
KILL_ROUNDS = 400


class Limits(TypedDict):
    """How much a run may use."""

    memory_bytes: int
    processes: int
    file_bytes: int
    output_bytes: int


class Spec(TypedDict):
    """What is started, and how."""

    command: list[str]
    cwd: str
    output: str
    limits: Limits


class Exceeded(TypedDict):
    """The limit that ended a run."""

    what: str
    used: int
    allowed: int


def main(spec: Spec) -> dict[str, Any]:
    """Starts the command, watches, clears up; returns the report."""
    for name in ("SIGTERM", "SIGINT", "SIGHUP"):  # the program may signal its parent; only stdin tells us to end
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), ignore)  # not SIG_IGN: the command would inherit that
    adopting = adopt_orphans()
    restrict(spec["limits"])
    try:
        with open(spec["output"], "ab") as output:
            process = subprocess.Popen(
                spec["command"],
                cwd=spec["cwd"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=os.name == "posix",
            )
    except OSError as error:
        return {"not_started": str(error)}
    said: queue.Queue[str] = queue.Queue()
    threading.Thread(target=listen, args=(said,), daemon=True).start()
    threading.Thread(target=lambda: (process.wait(), said.put("ended")), daemon=True).start()
    tree = Tree(process.pid, spec["limits"])
    limit = watch(process, tree, said, spec)
    killed = tree.end(process, adopting)
    trim_output(spec["output"], spec["limits"]["output_bytes"])
    return {
        "returncode": process.returncode,
        "limit": limit,
        "peak_bytes": tree.peak_bytes,
        "killed": killed,
    }


def ignore(*_: object) -> None:
    """A signal that changes nothing."""


def watch(process: subprocess.Popen[bytes], tree: Tree, said: queue.Queue[str], spec: Spec) -> Exceeded | None:
    """Waits until the run is over; returns the limit that ended it, if one did."""
    while True:
        try:
            word = said.get(timeout=tree.poll_s)
        except queue.Empty:
            limit = tree.exceeded()
            trim_output(spec["output"], spec["limits"]["output_bytes"])
            if limit:
                return limit
            continue
        if word == "t":
            ask_to_end(process)
        else:  # the command has ended, or the server has gone
            return None


def listen(said: queue.Queue[str]) -> None:
    """Hands on what the server says; the end of stdin is the end of the server."""
    while True:
        word = os.read(0, 1)
        said.put(word.decode() or "gone")
        if not word:
            return


def ask_to_end(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM to the command's process group."""
    with contextlib.suppress(OSError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGTERM)
        else:
            process.terminate()


def adopt_orphans() -> bool:
    """Linux: processes whose parent ends become our children, wherever in the tree they are."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        import ctypes

        return ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    except (ImportError, OSError, AttributeError):
        return False


def restrict(limits: Limits) -> None:
    """Kernel limits that the tree inherits: the size of one file, and no core dumps.

    Not the address space: it is no measure of memory where CUDA, or a memory map, reserves it.
    """
    try:
        import resource
    except ImportError:
        return  # Windows
    for name, wanted in ((resource.RLIMIT_FSIZE, limits["file_bytes"]), (resource.RLIMIT_CORE, 0)):
        _, hard = resource.getrlimit(name)
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(name, (allowed, allowed))


def trim_output(path: str, allowed: int) -> None:
    """Keeps the first part and the last of an output that grows too long. It is open for appending, and goes on."""
    with contextlib.suppress(OSError):
        if os.path.getsize(path) > allowed:
            with open(path, "r+b") as file:
                file.seek(-(allowed // 4), os.SEEK_END)
                last = file.read(allowed // 4)
                file.truncate(allowed // 2)
                file.seek(0, os.SEEK_END)
                file.write(MARKER + last)


class Tree:
    """All processes below the guardian."""

    def __init__(self, command_pid: int, limits: Limits) -> None:
        import psutil  # after the start of the command: it costs as much as a start of Python

        self.psutil = psutil
        self.me = psutil.Process()
        self.command_pid = command_pid
        self.limits = limits
        self.peak_bytes = 0
        self.poll_s = SHORTEST_POLL_S
        self.seen: dict[tuple[int, float], Process] = {}

    def living(self) -> list[Process]:
        """The tree's processes. Those once seen stay known, for systems where an orphan leaves the tree."""
        with contextlib.suppress(self.psutil.Error):
            for child in self.me.children(recursive=True):
                self.seen.setdefault((child.pid, child.create_time()), child)
        self.seen = {key: child for key, child in self.seen.items() if alive(child)}
        return list(self.seen.values())

    def exceeded(self) -> Exceeded | None:
        """The limit that the tree has passed, with both numbers, or None."""
        started = time.perf_counter()
        processes = self.living()
        used = self.memory(processes)
        self.peak_bytes = max(self.peak_bytes, used)
        cost = time.perf_counter() - started
        self.poll_s = min(max(SHORTEST_POLL_S, POLL_SHARE * cost), LONGEST_POLL_S)
        if used > self.limits["memory_bytes"]:
            return {"what": "memory", "used": used, "allowed": self.limits["memory_bytes"]}
        if len(processes) > self.limits["processes"]:
            return {"what": "processes", "used": len(processes), "allowed": self.limits["processes"]}
        return None

    def memory(self, processes: list[Process]) -> int:
        """Bytes of the whole tree. Pages that forks share are counted once, where that could matter and can be told."""
        resident = self.total(processes, lambda p: p.memory_info().rss)
        if resident <= self.limits["memory_bytes"] or len(processes) < 2:
            return resident
        return self.total(processes, lambda p: getattr(p.memory_full_info(), "pss", p.memory_info().rss))

    def total(self, processes: list[Process], measure: Callable[[Process], int]) -> int:
        """The sum of a number over processes that may end meanwhile."""
        total = 0
        for process in processes:
            with contextlib.suppress(self.psutil.Error):
                total += measure(process)
        return total

    def end(self, command: subprocess.Popen[bytes], adopting: bool) -> int:
        """Kills everything below us and waits until it is gone; returns how many outlived the command."""
        command.poll()
        strays = [p for p in self.living() if p.pid != self.command_pid]
        for _ in range(KILL_ROUNDS):
            left = self.living()
            if not left:
                break
            if any(group_of(process) == self.command_pid for process in left):
                with contextlib.suppress(OSError):
                    os.killpg(self.command_pid, signal.SIGKILL)  # in one stroke: no fork slips through
            for process in left:
                with contextlib.suppress(self.psutil.Error):
                    process.kill()
            if adopting:
                reap(self.command_pid)
            time.sleep(0.002)
        command.wait()
        if adopting:
            reap(self.command_pid)
        return len(strays)


def alive(process: Process) -> bool:
    """Whether it still runs; a zombie does not."""
    import psutil

    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def group_of(process: Process) -> int | None:
    """Its process group, or None."""
    try:
        return os.getpgid(process.pid)
    except (OSError, AttributeError):  # gone, or Windows
        return None


def reap(command_pid: int) -> None:
    """Takes the exit status of adopted processes that have ended; the command's own is its Popen's."""
    with contextlib.suppress(OSError):
        while True:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None or ended.si_pid == command_pid:
                return
            os.waitpid(ended.si_pid, 0)


if __name__ == "__main__":
    report = main(json.loads(sys.argv[1]))
    with contextlib.suppress(OSError):  # the server may have gone
        os.write(1, json.dumps(report).encode() + b"\n")
    os._exit(0)  # the listening thread may wait for ever

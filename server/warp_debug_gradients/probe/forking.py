"""Forked children and their answers: the same random numbers as in the parent, one pickled reply, then the end."""

from __future__ import annotations

import os
import pickle
import random
import select
import signal
import sys
import time
from typing import Any, Callable

EXTRA_BYTES = 3 << 29  # that forked programs running side by side may take, beyond what one of them takes


def fork() -> int:
    """`os.fork` whose child draws the parent's random numbers: Python seeds its global generator anew in a child."""
    state = random.getstate()
    pid = os.fork()
    if pid == 0:
        random.setstate(state)
    return pid


def send(descriptor: int, reply: Any) -> None:
    """Write the whole reply and end this process, without the user's exit handlers."""
    view = memoryview(pickle.dumps(reply, protocol=4))
    while view:
        view = view[os.write(descriptor, view) :]
    os._exit(0)


def receive(descriptor: int, pid: int, deadline: float) -> tuple[Any, str | None]:
    """(reply, None) of a child, or (None, why there is none); it is ended at `deadline` (time.perf_counter)."""
    data, late = bytearray(), False
    try:
        while True:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.perf_counter()))
            if not ready:
                late = True
                os.kill(pid, signal.SIGKILL)
                break
            chunk = os.read(descriptor, 1 << 20)
            if not chunk:
                break
            data += chunk
    finally:
        os.close(descriptor)
        _, status = os.waitpid(pid, 0)
    if late:
        return None, "time"
    return (pickle.loads(bytes(data)), None) if data else (None, f"status {status}")


def ask(answer: Callable[[], Any], deadline: float) -> Any:
    """What `answer` returns in a forked child; None where it failed, or gave nothing before `deadline`."""
    read_end, write_end = os.pipe()
    pid = fork()
    if pid == 0:
        try:
            os.close(read_end)
            reply = answer()
        except BaseException:
            reply = None
        send(write_end, reply)
    os.close(write_end)
    return receive(read_end, pid, deadline)[0]


def at_once(program_bytes: int | None) -> int:
    """How many forks may run side by side: one for each core, fewer of a program that takes much memory.

    program_bytes: what the whole program took at its peak; some of it is there already, and shared.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    own = max(1, (program_bytes or 0) - peak_bytes())
    return max(1, min(cores, 1 + EXTRA_BYTES // own))


def peak_bytes() -> int:
    """The most memory that this process has had so far; 0 where the system does not say."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024

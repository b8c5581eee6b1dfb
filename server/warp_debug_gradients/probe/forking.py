"""Forked children and their answers: the same random numbers as in the parent, one pickled reply, then the end."""

from __future__ import annotations

import os
import pickle
import random
import select
import signal
import time
from typing import Any, Callable


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

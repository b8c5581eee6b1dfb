"""How much memory a command and everything that it starts take: anonymous pages, shared ones once, and arena files."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from pathlib import Path

POLL_S = 0.1
MIB = 1 << 20
_ANONYMOUS = re.compile(r"^Pss_Anon:\s+(\d+)|^Pss_Shmem:\s+(\d+)", re.MULTILINE)


def peak_of(command: list[str], **options) -> tuple[subprocess.CompletedProcess, int]:
    """The finished command and the most bytes that its processes had at once."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    ended, peak = threading.Event(), [0]

    def watch() -> None:
        while not ended.wait(POLL_S):
            peak[0] = max(peak[0], used_by(process.pid))

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        output, errors = process.communicate()
    finally:
        ended.set()
        watching.join()
    return subprocess.CompletedProcess(command, process.returncode, output, errors), peak[0]


def used_by(pid: int) -> int:
    """Bytes of a process tree now. An arena is a file: all its pages count, whether they are mapped or not."""
    total, arenas = 0, {}
    for one in _tree(pid):
        try:
            found = _ANONYMOUS.findall(Path(f"/proc/{one}/smaps_rollup").read_text())
            total += 1024 * sum(int(a or b) for a, b in found)
            for descriptor in Path(f"/proc/{one}/fd").iterdir():
                if ".arena-" in os.readlink(descriptor):
                    status = descriptor.stat()
                    arenas[status.st_dev, status.st_ino] = 512 * status.st_blocks
        except (OSError, ValueError):
            continue  # it has just ended
    return total + sum(arenas.values())


def _tree(pid: int) -> list[int]:
    found, waiting = [], [pid]
    while waiting:
        one = waiting.pop()
        found.append(one)
        try:
            for task in Path(f"/proc/{one}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except OSError:
            continue
    return found

"""What a run may use. The defaults stop what would harm the machine, not what is merely large."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from warp_debug_gradients.errors import UsageError

PREFIX = "WARP_DEBUG_GRADIENTS_"
MEMORY_SHARE = 0.8  # of the machine's, or of the container's
CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
GIGABYTE = 1_000_000_000


@dataclass(frozen=True)
class Limits:
    """Of one run: the probe and everything that it starts."""

    memory_bytes: int
    processes: int
    output_bytes: int
    file_bytes: int

    @classmethod
    def from_environment(cls) -> Limits:
        """The defaults, or what WARP_DEBUG_GRADIENTS_MEMORY_GB, _PROCESSES, _OUTPUT_MB and _FILE_GB say."""
        return cls(
            memory_bytes=int(_number("MEMORY_GB", MEMORY_SHARE * machine_memory() / GIGABYTE) * GIGABYTE),
            processes=int(_number("PROCESSES", 512)),
            output_bytes=int(_number("OUTPUT_MB", 4) * 1_000_000),
            file_bytes=int(_number("FILE_GB", 50) * GIGABYTE),
        )

    def as_dict(self) -> dict[str, int]:
        """For the guardian."""
        return asdict(self)


def calls_at_once() -> int:
    """How many calls may run in one workspace; WARP_DEBUG_GRADIENTS_CALLS, default 2."""
    return max(1, int(_number("CALLS", 2)))


def ledger_bytes() -> int:
    """What the recordings of a ledger may hold; WARP_DEBUG_GRADIENTS_LEDGER_MB, default 1024."""
    return int(_number("LEDGER_MB", 1024) * (1 << 20))


def machine_memory() -> int:
    """Bytes that this machine, or the container that we are in, may use."""
    total = psutil.virtual_memory().total
    for path in CONTAINER_LIMITS:
        try:
            total = min(total, int(Path(path).read_text()))
        except (OSError, ValueError):  # not in a container, or "max"
            continue
    return total


def _number(name: str, default: float) -> float:
    """The variable as a number."""
    text = os.environ.get(PREFIX + name)
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise UsageError(f"{PREFIX}{name}={text!r} should be a positive number. Unset it for the default.")
    return value

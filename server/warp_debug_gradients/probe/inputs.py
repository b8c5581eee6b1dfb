"""What a run depends on besides its arguments: the files and folders that it reads, and whether it asks anyone else.

A run whose files are as they were would be the same run. What Python opens is seen by an audit hook; what a native
library opens by itself is not, so that a program with one that reads data is never called the same.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

MOST_FILES = 20_000
NOT_INPUT = ("/proc/", "/sys/", "/dev/")  # no files
ASKS_OTHERS = frozenset(
    {"socket.connect", "subprocess.Popen", "os.system", "os.posix_spawn", "os.fork", "sqlite3.connect"}
)
READS = frozenset({"open", "os.listdir", "os.scandir"})
WATCHED = READS | ASKS_OTHERS
OF_THE_MACHINE = frozenset({"uname", "ldconfig", "gcc", "cc", "ld"})  # what platform and ctypes ask: always the same
READS_BY_ITSELF = ("h5py", "netCDF4", "pxr", "tables", "zarr", "cv2")  # modules whose libraries open files

Identity = tuple[int, int, int]


class Inputs:
    """The files of one run. Made before the program starts; there is no way to take an audit hook back."""

    def __init__(self, own: str) -> None:
        """own: the folder that we write to ourselves; our own sources are not the program's either."""
        self.began_ns = time.time_ns()
        self._own = tuple(os.path.join(os.path.abspath(folder), "") for folder in (own, os.path.dirname(__file__)))
        self._paths: set[str] = set()
        self._asked: str | None = None
        self._on = True
        sys.addaudithook(self._heard)

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in WATCHED or not self._on:  # Python tells of much else: be quick
            return
        try:
            self._note(event, *arguments)
        except Exception:  # an audit hook that raises stops the program
            self._asked = f"{event} of something that is no path"

    def _note(self, event: str, subject: Any, mode: Any = None, *_: Any) -> None:
        if event in READS:
            only_written = event == "open" and mode and mode[0] in "wxa" and "+" not in mode
            if isinstance(subject, (str, bytes)) and not only_written:
                self._paths.add(os.path.abspath(os.fsdecode(subject)))
        elif event != "subprocess.Popen" or os.path.basename(os.fsdecode(subject)) not in OF_THE_MACHINE:
            self._asked = event

    def record(self, kernels: str | None) -> dict[str, Any]:
        """{'began_ns', 'files': {path: identity, or None where there is none}, 'unknown': what else it may depend on}.

        kernels: Warp's kernel cache, whose content follows from the sources.
        """
        self._on = False
        modules = (getattr(m, "__file__", None) for m in list(sys.modules.values()))
        paths = {*self._paths, *(os.path.abspath(f) for f in modules if isinstance(f, str))}
        skipped = (*NOT_INPUT, *self._own, *([os.path.join(os.path.abspath(kernels), "")] if kernels else []))
        cache = os.sep + "__pycache__" + os.sep
        files = {p: identity(p) for p in sorted(paths) if not (p + os.sep).startswith(skipped) and cache not in p}
        native = next((name for name in READS_BY_ITSELF if name in sys.modules), None)
        why = f"it calls {self._asked}" if self._asked else f"{native} opens files by itself" if native else None
        if len(files) > MOST_FILES:
            files, why = {}, f"it reads more than {MOST_FILES} files"
        return {"began_ns": self.began_ns, "files": files, "unknown": why}


def identity(path: str) -> Identity | None:
    """What changes with every change of a file or of a folder's list: (inode, size, time of the last change)."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_ino, found.st_size, found.st_ctime_ns)

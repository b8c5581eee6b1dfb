"""A forked evaluation must leave no trace: nothing printed, nothing written, nothing left running.

Files that the program opens for writing live in memory, descriptors that were open for writing lead to the
null device, and the file-size limit stops what does not go through Python. The user's exit handlers never run, since a child ends by `os._exit`.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import signal
import stat
import sys
from typing import Any, Callable

from .bootstrap import die_with_parent

_MAP_FIXED = 0x10
_WRITE_MODES = frozenset("wax+")
_CHANGING_CALLS = (
    "remove",
    "unlink",
    "rename",
    "replace",
    "rmdir",
    "mkdir",
    "symlink",
    "link",
    "truncate",
    "chmod",
    "utime",
)


def enter(keep: set[int], forbid_growth: bool = True) -> Callable[[], None]:
    """Isolate this (forked) process. `keep`: descriptors that must stay as they are (the reply pipe).

    Returns a function that lets Python write files again, for code that is not the user's.

    forbid_growth: also stop writes that do not go through Python; a recording needs its own file to grow.
    """
    parent = os.getppid()
    if sys.platform.startswith("linux") and parent == 1:
        os._exit(0)  # it went before this line
    die_with_parent(parent)  # a fork has cleared the setting
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (1, 2):
        os.dup2(null, descriptor)
    for descriptor in _writable_files() - keep:
        os.dup2(null, descriptor)
    _unshare_memory(keep)
    allow_writes = redirect_writes()
    if forbid_growth:
        _forbid_growth()
    return allow_writes


def _unshare_memory(keep: set[int]) -> None:
    """Writable shared mappings (np.memmap of the user's file, shared memory) become copies of this process's own.

    Mappings of the files behind `keep` stay shared: through them a recording is handed on.
    """
    if not sys.platform.startswith("linux"):
        return
    import ctypes
    import mmap

    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as stream:
        mapped = [line.split()[:5] for line in stream if "s " in line]  # mostly shared ones: hundreds are not
    kept = {os.fstat(descriptor).st_ino for descriptor in keep}
    for span, access, _, _, inode in mapped:
        if not (access.startswith("rw") and access.endswith("s")) or int(inode) in kept:
            continue
        first, end = (int(part, 16) for part in span.split("-"))
        content = ctypes.string_at(first, end - first)
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED
        if libc.mmap(first, end - first, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0) == first:
            ctypes.memmove(first, content, len(content))


def other_processes() -> int:
    """How many living child processes this process has (workers of a pool, a simulator behind a pipe)."""
    mine, found = os.getpid(), 0
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as stream:
                    state, parent = stream.read().rpartition(")")[2].split()[:2]
            except (OSError, ValueError):
                continue
            found += int(parent) == mine and state != "Z"
    return found


def _writable_files() -> set[int]:
    """Descriptors of regular files that are open for writing (the user's logs, checkpoints)."""
    import fcntl

    found = set()
    try:
        listed = os.listdir("/proc/self/fd")
    except OSError:
        listed = [str(n) for n in range(3, 256)]
    for name in listed:
        descriptor = int(name)
        try:
            is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
            writable = fcntl.fcntl(descriptor, fcntl.F_GETFL) & (os.O_WRONLY | os.O_RDWR)
        except OSError:
            continue
        if is_file and writable:
            found.add(descriptor)
    return found


class _Scratch(io.BytesIO):
    """A file that the program believes it writes: it can be read again in this process, and is nowhere else."""

    def __init__(self, files: dict[str, bytes], path: str, content: bytes):
        super().__init__(content)
        self._files, self._path = files, path
        self.name = path

    def close(self) -> None:
        if not self.closed:
            self._files[self._path] = self.getvalue()
        super().close()


def redirect_writes(inside: tuple[str, ...] = (os.sep,)) -> Callable[[], None]:
    """Keep what Python code writes below the folders `inside` in memory; returns a function that undoes it."""
    saved = (
        builtins.open,
        io.open,
        os.open,
        {name: getattr(os, name) for name in _CHANGING_CALLS if hasattr(os, name)},
    )
    open_file, open_descriptor = builtins.open, os.open
    roots = tuple(os.path.join(os.path.abspath(folder), "") for folder in inside)
    files: dict[str, bytes] = {}

    def guarded(path: Any) -> str | None:
        """The absolute path where it lies below a guarded folder."""
        if isinstance(path, int):
            return None
        absolute = os.path.abspath(os.fsdecode(path))
        return absolute if absolute.startswith(roots) else None

    def opened(
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: Any = None,
        errors: Any = None,
        newline: Any = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        path = guarded(file)
        if path is None or (not _WRITE_MODES & set(mode) and path not in files):
            return open_file(file, mode, buffering, encoding, errors, newline, *args, **kwargs)
        content = b"" if "w" in mode or "x" in mode else files.get(path) or _present(open_file, path)
        scratch = _Scratch(files, path, content)
        scratch.seek(len(content) if "a" in mode else 0)
        return (
            scratch
            if "b" in mode
            else io.TextIOWrapper(scratch, encoding=encoding or "utf-8", errors=errors, newline=newline)
        )

    def opened_descriptor(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC) and guarded(path):
            return open_descriptor(os.devnull, os.O_RDWR)
        return open_descriptor(path, flags, *args, **kwargs)

    def unchanging(original: Any) -> Any:
        return lambda path, *args, **kwargs: None if guarded(path) else original(path, *args, **kwargs)

    builtins.open = io.open = opened  # type: ignore[assignment]
    os.open = opened_descriptor  # type: ignore[assignment]
    for name, original in saved[3].items():
        setattr(os, name, unchanging(original))

    def undo() -> None:
        builtins.open, io.open, os.open = saved[:3]
        for name, original in saved[3].items():
            setattr(os, name, original)

    return undo


def forbidden_write(error: BaseException | None) -> str | None:
    """Why the program failed here and not at home: it writes to a file in a way that cannot be kept in memory."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if type(error).__module__ == "sqlite3" and type(error).__name__ == "OperationalError":
            return f"the program writes to an SQLite database within the iteration ({error}), which an evaluation must not do"
        if isinstance(error, OSError) and error.errno == errno.EFBIG:
            return f"the program writes to a file within the iteration ({error}), which an evaluation must not do"
        error = error.__cause__ or error.__context__
    return None


def _present(open_file: Any, path: str) -> bytes:
    try:
        with open_file(path, "rb") as stream:
            return stream.read()
    except OSError:
        return b""


def _forbid_growth() -> None:
    """Libraries that write without Python get EFBIG instead of the user's disk."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    except (ImportError, ValueError, OSError):
        pass

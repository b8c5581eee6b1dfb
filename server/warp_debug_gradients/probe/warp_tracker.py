"""Warp's own overwrite tracker (`verify_autograd_array_access`), listened to: who warned about what, and from where.

Warp prints the *contents* of the array and the line where the writing kernel is defined. Here every warning gets
the user's name of the array, the user's launch line and a count; nothing is printed. On Warp < 1.17 an array stays
"read" after the backward pass: warnings that stem from such reads alone are marked `stale`.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import weakref
from typing import Any, Callable, Optional

from . import names
from .arrays import quiet_now
from .names import Origins
from .registry import Registry, root

READS = "_warp_debug_gradients_reads"  # attribute on wp.array: the tapes whose launches have read it
TAPE_LIFE = "_warp_debug_gradients_life"  # attribute on wp.Tape: its recording up to the next backward or reset
MAX_KINDS = 400  # different warnings kept
CODEGEN_FRAMES = 14  # how far above a warning of the code generator the kernel's `adj` is looked for

IN_KERNEL = re.compile(r"argument (?P<argument>\S+) in kernel (?P<kernel>\S+) at (?P<file>.+?):(?P<line>\d+) is being")

BLIND_SPOTS = (
    "values read in the left operand of a binary operator (x[i]*2.0, x[i]+y[i], x[i]**2.0): Warp does not count them as read",
    "arrays in a wp.struct, tile_load/tile_store, wp.indexedarray",
    "a second array over the same memory, and a write through a view of an array that was read whole",
    "zero_(), fill_() and assign(numpy): not seen as writes, and they clear the flag that a read has set",
    "writes through NumPy, by launches outside the tape, and after the tape has closed",
    "whether the value really changed and whether the adjoint needs it: a warning is no proof of a wrong gradient",
)
STICKY = (
    "Warp {version} leaves the read flags set after backward; warnings that stem only from an earlier, finished tape "
    "are marked stale (Warp 1.17 clears the flags)"
)
NO_COPY_SITE = "Warp {version} does not say where a copy was made; the line given here is ours"


class Life:
    """A tape's recording until its backward pass or reset; a read in a finished life corrupts nothing any more."""

    __slots__ = ("finished", "tape")

    def __init__(self, tape: Any):
        self.finished = False
        self.tape = weakref.ref(tape)

    @property
    def over(self) -> bool:
        return self.finished or self.tape() is None


class WarpTracker:
    """Turns Warp's tracker on and collects what it says. Install it before the program loads a Warp module."""

    def __init__(self) -> None:
        self.available = False
        self.warnings: dict[tuple[Any, ...], dict[str, Any]] = {}
        self.of_warp = 0  # warnings about kernels of Warp's own
        self.dropped = 0
        self._wp: Any = None
        self._origins: Any = None
        self._registry: Any = None

    def install(self, wp: Any, origins: Origins, registry: Registry, job: dict[str, Any]) -> None:
        """Patch the imported `warp`; the kernels of this process build in `job["kernel_cache"]`."""
        self._wp, self._origins, self._registry = wp, origins, registry
        if not hasattr(wp.config, "verify_autograd_array_access") or not hasattr(wp.array, "mark_write"):
            return
        cache = job.get("kernel_cache")
        if cache:
            os.makedirs(cache, exist_ok=True)
            os.environ["WARP_CACHE_PATH"] = cache  # read when Warp initialises, which is still to come
            wp.config.kernel_cache_dir = cache
        wp.config.verify_autograd_array_access = True
        self._watch_arrays(wp.array)
        self._watch_tapes(wp.Tape)
        self._watch_code_generation(wp._src.codegen)
        self.available = True

    def result(self) -> dict[str, Any]:
        """The fields of tracker.json besides the common ones."""
        version = getattr(self._wp, "__version__", None) or "?"
        spots: list[str] = [*BLIND_SPOTS]
        if _version(version) < (1, 17):
            spots += [STICKY.format(version=version), NO_COPY_SITE.format(version=version)]
        if self.of_warp:
            spots.append(f"{self.of_warp} warning(s) about kernels inside the warp package are left out")
        if self.dropped:
            spots.append(f"{self.dropped} further warning(s) at other places are left out")
        rows = sorted(self.warnings.values(), key=lambda row: (row["stale"], -row["count"]))
        return {
            "warp_version": version,
            "available": self.available,
            "warnings": rows,
            "blind_spots": spots if self.available else ["this Warp has no tracker"],
        }

    # -- patches ---------------------------------------------------------------------------------

    def _watch_arrays(self, array: Any) -> None:
        tracker, mark_read, mark_write, mark_init = self, array.mark_read, array.mark_write, array.mark_init

        @functools.wraps(mark_read)
        def read(self: Any) -> Any:
            if not quiet_now():
                tracker._read(self)
            return mark_read(self)

        @functools.wraps(mark_write)
        def write(self: Any, **kwargs: Any) -> Any:
            if not self._is_read:
                return mark_write(self, **kwargs)
            if not quiet_now():  # Warp would print the array's contents here: what it says is kept instead
                tracker._written(self, kwargs)
            return None

        @functools.wraps(mark_init)
        def init(self: Any) -> Any:
            self.__dict__.pop(READS, None)
            return mark_init(self)

        array.mark_read, array.mark_write, array.mark_init = read, write, init

    def _watch_tapes(self, tape: Any) -> None:
        def ending(original: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(original)
            def method(self: Any, *args: Any, **kwargs: Any) -> Any:
                try:
                    return original(self, *args, **kwargs)
                finally:
                    life = self.__dict__.pop(TAPE_LIFE, None)
                    if life is not None:
                        life.finished = True

            return method

        tape.backward = ending(tape.backward)
        tape.reset = ending(tape.reset)

    def _watch_code_generation(self, codegen: Any) -> None:
        """Warp warns by `log_warning` from 1.14 on and by `print` before: either is a global name of its module."""
        name = "log_warning" if hasattr(codegen, "log_warning") else "print"
        original = getattr(codegen, name, print)

        def said(*args: Any, **kwargs: Any) -> Any:
            text = str(args[0]) if args else ""
            if "within the same kernel" not in text:
                return original(*args, **kwargs)
            self._in_kernel(text, _kernel_of(sys._getframe(1)))
            return None

        setattr(codegen, name, said)

    # -- what was said ---------------------------------------------------------------------------

    def _read(self, array: Any) -> None:
        tape = self._wp._src.context.runtime.tape
        if tape is None:
            return
        life = tape.__dict__.get(TAPE_LIFE)
        if life is None:
            life = tape.__dict__[TAPE_LIFE] = Life(tape)
        while array is not None:  # Warp flags the arrays above a view, too
            reads = array.__dict__.get(READS) or []
            if life not in reads:
                array.__dict__[READS] = [r for r in reads if not r.over] + [life]
            array = getattr(array, "_ref", None)

    def _written(self, array: Any, kwargs: dict[str, Any]) -> None:
        frame = self._origins.frame(3)
        at = names.place(frame) or {"file": None, "line": None, "function": None}
        kernel, argument = kwargs.get("kernel_name"), kwargs.get("arg_name")
        owner = array if self._registry.serial(array) in self._registry.allocated else root(array)
        allocated = self._registry.allocated.get(self._registry.serial(owner))
        key = (allocated or id(owner), argument, kernel, at["file"], at["line"])
        row = self.warnings.get(key)
        stale = self._stale(array)
        if row is not None:
            row["count"] += 1
            row["stale"] = row["stale"] and stale
            return
        if self._full():
            return
        variable = self._name(array, owner, frame, allocated)
        definition = {"file": kwargs.get("filename"), "line": kwargs.get("lineno")} if kernel else None
        by = f"passed to argument {argument} in kernel {kernel}" if kernel else "is the destination of a copy and"
        self.warnings[key] = {
            "kind": "launch" if kernel else "copy",
            "array": variable,
            "allocated": {"file": allocated[0], "line": allocated[1]} if allocated else None,
            "argument": argument,
            "kernel": kernel,
            **at,
            "definition": definition,
            "count": 1,
            "stale": stale,
            "text": f"Array {variable} {by} is being written to but has already been read from in a previous launch.",
        }

    def _in_kernel(self, text: str, adjoint: Any) -> None:
        found = IN_KERNEL.search(text)
        file = found["file"] if found else getattr(adjoint, "filename", None)
        kernel = found["kernel"] if found else getattr(adjoint, "fun_name", None)
        argument = found["argument"] if found else None
        line = int(found["line"]) if found else getattr(adjoint, "fun_lineno", None)
        if file and os.path.abspath(file).startswith(os.path.dirname(os.path.abspath(self._wp.__file__)) + os.sep):
            self.of_warp += 1
            return
        key = ("in_kernel", kernel, argument, file, line)
        if key in self.warnings or self._full():
            return
        self.warnings[key] = {
            "kind": "in_kernel",
            "array": argument,
            "allocated": None,
            "argument": argument,
            "kernel": kernel,
            "file": file,
            "line": line,
            "function": kernel,
            "definition": {"file": file, "line": line},
            "count": 1,
            "stale": False,
            "text": text.removeprefix("Warning: ").split(" This may corrupt")[0],
        }

    def _stale(self, array: Any) -> bool:
        link, reads = array, None
        while link is not None and not reads:  # a view made after the read has inherited the flag, not our note
            reads = link.__dict__.get(READS)
            link = getattr(link, "_ref", None)
        return bool(reads) and all(life.over for life in reads or ())

    def _name(self, array: Any, owner: Any, frame: Any, allocated: Optional[tuple[str, int]]) -> str:
        named = names.assigned_name(*allocated) if allocated else None
        if named:
            return named
        found = names.find({id(array): array, id(owner): owner}, self._origins.frames(frame))
        for item in (array, owner):
            if found.get(id(item)):
                return min(found[id(item)], key=len)
        return f"array of shape {tuple(array.shape)}"

    def _full(self) -> bool:
        if len(self.warnings) < MAX_KINDS:
            return False
        self.dropped += 1
        return True


def _kernel_of(frame: Any) -> Any:
    """The adjoint builder (it knows the kernel's name and file) behind a warning of the code generator."""
    for _ in range(CODEGEN_FRAMES):
        if frame is None:
            return None
        builder = frame.f_locals.get("adj")
        if hasattr(builder, "fun_name"):
            return builder
        frame = frame.f_back
    return None


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:2])

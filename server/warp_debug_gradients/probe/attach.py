"""Runs the user's program unedited, as Python itself would, and says how it ended.

`Program.from_job(job).execute()` is `python train.py ARGS` or `python -m pkg.train ARGS` inside this
process: a fresh `__main__`, the right `sys.argv` and `sys.path[0]`, the same ending (exit status, traceback
on stderr). `after_import("warp", callback)` calls back the moment the *program* has imported a package, so
that hooks are in place before its next line runs and nothing is imported on its behalf.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.machinery
import importlib.util
import os
import sys
import time
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.machinery import ModuleSpec
from typing import Any

from .failure import trim_exception
from .overrides import Overrides, find_spec_after


class StopProgram(BaseException):
    """Raised by a hook, in the user's own stack, when the probe has seen enough. Not a failure."""


class TargetError(Exception):
    """The job names something that cannot be run or called; the message says what to change."""


@dataclass
class Outcome:
    """How the user's program ended. `traceback` starts at the user's first frame."""

    exit_code: int
    exception: BaseException | None = None
    traceback: types.TracebackType | None = None
    stopped: StopProgram | None = None


class Program:
    """The user's program: a script, a module (`-m`), or callables in a file of the workspace."""

    def __init__(
        self,
        *,
        script: str | None = None,
        module: str | None = None,
        args: Sequence[Any] = (),
        cwd: str | None = None,
        workspace: str | None = None,
        overrides: Overrides | None = None,
    ) -> None:
        self.script = os.path.abspath(script) if script else None
        self.module = module
        self.args = [str(arg) for arg in args]
        self.cwd = os.path.abspath(cwd or os.getcwd())
        self.workspace = os.path.abspath(workspace or self.cwd)
        self.overrides = overrides or Overrides({}, self.workspace)
        self._previous_main: types.ModuleType | None = None

    @classmethod
    def from_job(cls, job: dict[str, Any]) -> Program:
        target = job.get("target") or {}
        workspace = job.get("workspace") or job.get("cwd") or os.getcwd()
        return cls(
            script=target.get("script"),
            module=target.get("module"),
            args=job.get("args") or (),
            cwd=job.get("cwd"),
            workspace=workspace,
            overrides=Overrides(job.get("overrides") or {}, workspace),
        )

    def execute(self) -> Outcome:
        """Runs the script or module to its end and returns the Outcome."""
        if self.script:
            return self.guard(partial(self._run_script, self.script))
        if self.module:
            return self.guard(partial(self._run_module, self.module))
        raise TargetError("the target names neither a script nor a module to run")

    def load(self, spec: str) -> Any:
        """The callable that `FILE.py:NAME` means, FILE being relative to the working folder or the workspace."""
        return load_callable(spec, self.workspace, self.cwd)

    def guard(self, function: Callable[[], Any]) -> Outcome:
        """Prepares the process, calls `function` as the program's main code, and returns the Outcome."""
        try:
            self._prepare()
            function()
        except StopProgram as stop:
            return Outcome(0, stopped=stop)
        except SystemExit as leaving:
            return self._left(leaving)
        except BaseException as error:
            return self._failed(error)
        return Outcome(0)

    # -- what Python does before the first line -----------------------------------------------------

    def _prepare(self) -> None:
        os.chdir(self.cwd)
        self.overrides.install(self.script, self.module)
        main: Any = types.ModuleType("__main__")
        main.__builtins__ = builtins
        if sys.version_info < (3, 14):  # from 3.14 on annotations are lazy (PEP 649)
            main.__annotations__ = {}
        # The module that was __main__ so far is this probe's own start: keep its globals alive.
        self._previous_main = sys.modules.get("__main__")
        sys.modules["__main__"] = main
        shown = self._shown_script()
        sys.argv[:] = [shown, *self.args]
        if hasattr(sys, "orig_argv"):
            started_with = ["-m", self.module] if self.module else [shown]
            sys.orig_argv[:] = [sys.executable, *started_with, *self.args]

    def _shown_script(self) -> str:
        """`sys.argv[0]`: the path as a person in the working folder would have typed it."""
        if not self.script:
            return "-m" if self.module else ""
        if self.script.startswith(os.path.join(self.cwd, "")):
            return os.path.relpath(self.script, self.cwd)
        return self.script

    def _run_script(self, script: str) -> None:
        if not getattr(sys.flags, "safe_path", False):
            sys.path.insert(0, os.path.dirname(os.path.realpath(script)))
        try:
            with open(script, "rb") as stream:
                source = stream.read()
        except OSError as error:
            print(f"{sys.executable}: can't open file '{script}': {error}", file=sys.stderr)
            raise _CannotStart(2) from error
        main: Any = sys.modules["__main__"]
        main.__file__ = script
        main.__cached__ = None
        main.__loader__ = importlib.machinery.SourceFileLoader("__main__", script)
        exec(self.overrides.compile_main(source, script), main.__dict__)

    def _run_module(self, name: str) -> None:
        if not getattr(sys.flags, "safe_path", False):
            sys.path.insert(0, os.getcwd())
        spec: Any = self.overrides.main_module(_find_main_module(name))
        code = spec.loader.get_code(spec.name)
        if code is None:
            raise _no_module(f"No code object available for {spec.name}")
        main: Any = sys.modules["__main__"]
        main.__file__ = spec.origin
        main.__cached__ = spec.cached
        main.__loader__ = spec.loader
        main.__package__ = spec.parent
        main.__spec__ = spec
        sys.argv[0] = spec.origin
        exec(code, main.__dict__)

    # -- what Python does after the last line -------------------------------------------------------

    def _left(self, leaving: SystemExit) -> Outcome:
        trim_exception(leaving)
        code = leaving.code
        if isinstance(leaving, _CannotStart):
            return Outcome(leaving.status, leaving.__cause__ or leaving)
        if code is None or code == 0:
            return Outcome(0)
        if not isinstance(code, int):
            print(code, file=sys.stderr)
            code = 1
        elif os.name == "posix":
            code &= 0xFF  # what a shell would see
        return Outcome(code, leaving, leaving.__traceback__)

    def _failed(self, error: BaseException) -> Outcome:
        trim_exception(error)
        self._print(error)
        interrupted = isinstance(error, KeyboardInterrupt)
        return Outcome(130 if interrupted else 1, error, error.__traceback__)

    def _print(self, error: BaseException) -> None:
        if sys.stdout:
            sys.stdout.flush()
        try:  # the user's own excepthook, if they have set one, as Python would
            sys.excepthook(type(error), error, error.__traceback__)
        except BaseException as hook_error:
            trim_exception(hook_error)
            if hook_error.__context__ is error:  # Python shows the two one after the other, not chained
                hook_error.__context__ = None
            print("Error in sys.excepthook:", file=sys.stderr)
            sys.__excepthook__(type(hook_error), hook_error, hook_error.__traceback__)
            print("\nOriginal exception was:", file=sys.stderr)
            sys.__excepthook__(type(error), error, error.__traceback__)


class _CannotStart(SystemExit):
    """Python would have refused before running a line; the message has been printed."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def _no_module(message: str, cause: BaseException | None = None) -> _CannotStart:
    print(f"{sys.executable}: {message}", file=sys.stderr)
    error = _CannotStart(1)
    error.__cause__ = cause or ImportError(message)
    return error


def _find_main_module(name: str) -> Any:
    """The spec that `python -m NAME` runs: the module, or the package's `__main__`."""
    parent = name.rpartition(".")[0]
    try:
        if parent:
            importlib.import_module(parent)
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if missing != parent and not parent.startswith(missing + "."):
            raise  # the parent package itself imports something that is missing
        message = f"Error while finding module specification for '{name}' (ModuleNotFoundError: {error})"
        raise _no_module(message) from error
    if spec is None:
        raise _no_module(f"No module named {name}", ModuleNotFoundError(f"No module named {name!r}", name=name))
    if spec.submodule_search_locations is not None:
        importlib.import_module(name)
        spec = importlib.util.find_spec(name + ".__main__")
        if spec is None:
            message = f"No module named {name}.__main__; '{name}' is a package and cannot be directly executed"
            raise _no_module(message)
    if spec.loader is None:
        raise _no_module(f"'{name}' is a namespace package and cannot be executed")
    return spec


# -- callables of the workspace -------------------------------------------------------------------------


def load_callable(spec: str, workspace: str, cwd: str | None = None) -> Any:
    """Imports FILE of `FILE.py:NAME[.NAME...]` under its own module name and returns the attribute.

    The file's folder goes on `sys.path` (a package's root, if the file lies in a package), so that its
    imports work as in a script that stands beside it; files named twice are imported once.
    """
    path, colon, attribute = spec.rpartition(":")
    if not colon or not path or not attribute:
        raise TargetError(f"{spec!r} should read FILE.py:NAME")
    candidates = [os.path.join(base, path) for base in (cwd, workspace) if base]
    path = next((os.path.abspath(each) for each in candidates if os.path.isfile(each)), None)
    if path is None:
        raise TargetError(f"{spec!r}: there is no such file in {' or '.join(b for b in (cwd, workspace) if b)}")
    found = _import_file(path)
    for depth, part in enumerate(attribute.split(".")):
        owner = found
        found = getattr(owner, part, None)
        if found is None:
            where = path if depth == 0 else ".".join(attribute.split(".")[:depth])
            public = ", ".join(sorted(n for n in vars(owner) if not n.startswith("_"))[:20]) if depth == 0 else ""
            raise TargetError(f"{spec!r}: {where} has no {part!r}" + (f"; it has {public}" if public else ""))
    return found


def _import_file(path: str) -> types.ModuleType:
    folder, base = os.path.split(path)
    name = os.path.splitext(base)[0]
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, package = os.path.split(folder)
        name = f"{package}.{name}"
    if folder not in sys.path:
        sys.path.insert(0, folder)
    importlib.invalidate_caches()
    module = importlib.import_module(name)
    if not _same_file(getattr(module, "__file__", None), path):
        raise TargetError(f"{path}: its module name {name!r} is taken by {module!r}; rename the file")
    return module


def _same_file(left: str | None, right: str) -> bool:
    try:
        return left is not None and os.path.samefile(left, right)
    except OSError:
        return False


# -- the moment of an import ------------------------------------------------------------------------------


class ImportHook:
    """Waits for the first import of a top-level package. `seconds`: how long the import took."""

    def __init__(self, name: str, callback: Callable[[types.ModuleType], Any]) -> None:
        self.name = name
        self.callback = callback
        self.done = False
        self.seconds: float | None = None

    def install(self) -> None:
        if self.name in sys.modules:
            self._fire(sys.modules[self.name], 0.0)
        else:
            sys.meta_path.insert(0, self)

    def remove(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != self.name or self.done:
            return None
        spec = find_spec_after(self, name, path, target)
        if spec is not None and spec.loader is not None:
            self._watch(spec.loader)
        return spec

    def _watch(self, loader: Any) -> None:
        """Wraps `exec_module` on this one loader object: its type, and so `__loader__`, stay the user's."""
        execute = loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            started = time.perf_counter()
            execute(module)
            if not self.done:
                self._fire(sys.modules.get(self.name, module), time.perf_counter() - started)
            loader.__dict__.pop("exec_module", None)

        loader.exec_module = exec_module

    def _fire(self, module: types.ModuleType, seconds: float) -> None:
        self.done = True
        self.seconds = seconds
        self.remove()
        self.callback(module)


def after_import(name: str, callback: Callable[[types.ModuleType], Any]) -> ImportHook:
    """Calls `callback(module)` once, as soon as the program's own import of `name` has finished."""
    hook = ImportHook(name, callback)
    hook.install()
    return hook

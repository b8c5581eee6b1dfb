"""An exception of the user's program -> the `error` object of trace.json."""

from __future__ import annotations

import importlib
import linecache
import os
import re
import sys
import types
from collections.abc import Iterator
from typing import Any

MAX_FRAMES = 40
MAX_TEXT = 20_000  # characters of a message

# 'Error while parsing function "k" at FILE:LINE:\n    source\n;', once for the kernel and once for each function.
_CODEGEN_PLACE = re.compile(r'Error while parsing function "([^"]+)" at (.+?):(\d+):\n.*?\n?;', re.DOTALL)
_KERNEL_NAME = re.compile(r"kernel '(\w+)'|Incomplete (?:argument|overload) annotations (?:on|for) function '?(\w+)")
# `warp.sim` was removed; the other packages are there, but only once they have been imported by name.
_REMOVED = re.compile(r"module 'warp' has no attribute 'sim'|cannot import name 'sim' from 'warp'")
_NOT_IMPORTED = re.compile(
    r"module 'warp' has no attribute '(fem|optim|sparse|render|autograd|utils|jax_experimental)'"
)

# Import name -> name on PyPI, where they differ.
_PACKAGES = {
    "cv2": "opencv-python",
    "PIL": "pillow",
    "yaml": "pyyaml",
    "pxr": "usd-core",
    "sklearn": "scikit-learn",
    "skimage": "scikit-image",
    "jax": "jax",
    "igl": "libigl",
    "mpl_toolkits": "matplotlib",
}

PROBE_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")


def is_probe_file(filename: str) -> bool:
    return os.path.abspath(filename).startswith(PROBE_FOLDER)


def trim_exception(error: BaseException) -> None:
    """Takes the probe's own frames out of an exception's traceback and those of its causes, in place."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        each.__traceback__ = trim_traceback(each.__traceback__)
        waiting += [each.__cause__, each.__context__, *(getattr(each, "exceptions", None) or ())]


def trim_traceback(traceback: types.TracebackType | None) -> types.TracebackType | None:
    """The same traceback without the probe's frames.

    Python hides its import machinery (`<frozen importlib...>`) from tracebacks, but not where a frame of
    the probe stands in between: those go too.
    """
    entries = list(_entries(traceback))
    files = [_filename(each) for each in entries]
    hidden = [is_probe_file(file) for file in files]
    if any(hidden):
        for i in range(1, len(files)):  # what the probe called
            hidden[i] |= hidden[i - 1] and (_is_frozen(files[i]) or files[i] == importlib.__file__)
        for i in reversed(range(len(files) - 1)):  # what called the probe
            hidden[i] |= hidden[i + 1] and _is_frozen(files[i])
    kept = None
    for entry, hide in zip(reversed(entries), reversed(hidden), strict=True):
        if not hide:
            kept = types.TracebackType(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return kept


# -- the error object -------------------------------------------------------------------------------------


def describe_failure(
    error: Any, *, workspace: str, script: str | None = None, cwd: str | None = None
) -> dict[str, Any]:
    """The `error` object of trace.json (docs/architecture.md) for what ended the user's program."""
    error = getattr(error, "exception", error)  # an Outcome will do
    place = _Place(workspace, script)
    frames = [_frame(entry) for entry in _entries(error.__traceback__) if not is_probe_file(_filename(entry))]
    own: dict[str, Any] | None = place.deepest(frames)
    kernel: str | None = None
    compiler_message, message = None, _shown(error)
    generated = _CODEGEN_PLACE.findall(message)
    if generated:  # Warp's code generator: the lines are those of the kernel and of the functions it calls
        kernel, compiler_message = generated[0][0], message
        message = _CODEGEN_PLACE.sub("", message).strip()
        inside = [each for each in generated if place.owns(each[1])] or generated
        own = {"file": inside[-1][1], "line": int(inside[-1][2]), "function": inside[-1][0]}
    elif isinstance(error, SyntaxError) and error.filename:
        own = {"file": error.filename, "line": error.lineno or 1, "function": None}
        message = error.msg or message
    elif re.search("build failed|compil|nvrtc", message, re.IGNORECASE):
        compiler_message = message
    kernel = kernel or _launched_kernel(error, message)
    missing = _missing_module(error, message)
    return {
        "type": type(error).__name__,
        "message": message,
        "file": own and own["file"],
        "line": own and own["line"],
        "function": own and own["function"],
        "source": linecache.getline(own["file"], own["line"]).strip() if own is not None else "",
        "traceback": frames if len(frames) <= MAX_FRAMES else [*frames[: MAX_FRAMES // 2], *frames[-MAX_FRAMES // 2 :]],
        "kernel": kernel,
        "compiler_message": compiler_message,
        "missing_module": missing,
        "advice": _advice(error, message, missing, kernel, workspace, script, cwd or os.getcwd()),
    }


class _Place:
    """Which files are the user's: those of the workspace, without the packages installed in it, and the script."""

    def __init__(self, workspace: str, script: str | None) -> None:
        self.workspace = os.path.join(os.path.realpath(workspace), "")
        self.script = os.path.realpath(script) if script else None

    def owns(self, filename: str) -> bool:
        filename = os.path.realpath(filename)
        if filename == self.script:
            return True
        installed = {"site-packages", "dist-packages"} & set(filename.split(os.sep))
        return filename.startswith(self.workspace) and not installed

    def deepest(self, frames: list[dict[str, Any]]) -> dict[str, Any] | None:
        return next((frame for frame in reversed(frames) if self.owns(frame["file"])), None)


def _entries(traceback: types.TracebackType | None) -> Iterator[types.TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _filename(entry: types.TracebackType) -> str:
    return entry.tb_frame.f_code.co_filename


def _is_frozen(filename: str) -> bool:
    return filename.startswith("<frozen importlib")


def _frame(entry: types.TracebackType) -> dict[str, Any]:
    return {"file": _filename(entry), "line": entry.tb_lineno, "function": entry.tb_frame.f_code.co_name}


def _message(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        refusal = _refused(error)
        why = f": it refused its arguments, {refusal}" if refusal else ""
        return f"the program ended itself with sys.exit({error.code!r}){why}"
    # KeyError shows its argument's repr; Warp's code generator raises subclasses of it with whole sentences.
    lone_text = isinstance(error, KeyError) and len(error.args) == 1 and isinstance(error.args[0], str)
    text = error.args[0] if lone_text and " " in error.args[0] else str(error)
    return "\n".join([text, *map(str, getattr(error, "__notes__", None) or ())])


def _shown(error: BaseException) -> str:
    """The message, where the exception has one that can be shown, and not more of it than anybody would read."""
    try:
        text = _message(error)
    except Exception as failure:  # the user's own __str__
        return f"(its text cannot be shown: {type(failure).__name__})"
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT // 2]} [...] {text[-MAX_TEXT // 2 :]}"


def _launched_kernel(error: BaseException, message: str) -> str | None:
    """The kernel's name, from the message or from Warp's own frames (`launch` holds it in `kernel`)."""
    named = _KERNEL_NAME.search(message)
    if named:
        return named.group(1) or named.group(2)
    found = None
    for entry in _entries(error.__traceback__):
        if f"{os.sep}warp{os.sep}" in _filename(entry):
            kernel = entry.tb_frame.f_locals.get("kernel")
            found = getattr(kernel, "key", None) or found
    return found if isinstance(found, str) else None


def _missing_module(error: BaseException, message: str) -> str | None:
    if isinstance(error, ModuleNotFoundError):
        return error.name
    reason = error.__cause__ or error.__context__
    if isinstance(error, ImportError) and isinstance(reason, ModuleNotFoundError):
        return reason.name  # "this needs Pillow", raised from the real reason
    if isinstance(error, (ImportError, AttributeError)) and _REMOVED.search(message):
        return "warp.sim"
    return None


# -- advice ---------------------------------------------------------------------------------------------------


def _advice(
    error: BaseException,
    message: str,
    missing: str | None,
    kernel: str | None,
    workspace: str,
    script: str | None,
    cwd: str,
) -> str:
    """One or two plain sentences: what to install or change. Empty where nothing useful is known."""
    if missing:
        return _missing_advice(missing, workspace)
    if isinstance(error, SyntaxError):
        version = ".".join(map(str, sys.version_info[:2]))
        return f"Correct the syntax of this line; the interpreter is Python {version} ({sys.executable})."
    if isinstance(error, FileNotFoundError) and error.filename:
        return _file_advice(error.filename, script, cwd)
    if isinstance(error, SystemExit):
        return _exit_advice(error)
    if isinstance(error, EOFError):
        return "The program waits for input, and there is none here: give it its values as arguments."
    if isinstance(error, ImportError) and "attempted relative import" in message:
        return "This file belongs to a package: run it as a module (python -m package.module), not as a script."
    if isinstance(error, AttributeError) and message.startswith("module 'warp' has no attribute"):
        return _wrong_warp_advice(message)
    for pattern, advice in _ADVICE:
        if re.search(pattern, message):
            return advice.format(kernel=kernel or "the kernel")
    return ""


def _missing_advice(name: str, workspace: str) -> str:
    top = name.partition(".")[0]
    pip = f"{sys.executable} -m pip install"
    if name == "warp.sim" or name.startswith("warp.sim."):
        return (
            "warp.sim was removed from Warp in 1.10: port the program to its successor Newton "
            f'({pip} newton), or run it with an older Warp ({pip} "warp-lang<1.10").'
        )
    if top == "warp" and name != "warp":
        version = getattr(sys.modules.get("warp"), "__version__", "installed here")
        return f"Warp {version} has no {name}: install the version of Warp that the program was written for."
    if top == "warp":
        return f"Warp is not installed in this interpreter: {pip} warp-lang, or choose the interpreter that has it."
    local = _find_module(top, workspace)
    if local:
        wanted = f" (its first folder on the search path is {sys.path[0]})" if sys.path else ""
        return (
            f"{local} exists but its folder is not on the program's search path{wanted}: "
            "run the program from the right folder or as a module, or set PYTHONPATH."
        )
    package = _PACKAGES.get(top, top.replace("_", "-"))
    return f"Install it into the interpreter that runs the program: {pip} {package}."


def _wrong_warp_advice(message: str) -> str:
    warp = sys.modules.get("warp")
    file = getattr(warp, "__file__", None) or f"{list(getattr(warp, '__path__', []))}"
    hidden = _NOT_IMPORTED.search(message)
    if not hasattr(warp, "Tape"):
        return f"{file} is not NVIDIA Warp: rename it, or uninstall it and {sys.executable} -m pip install warp-lang."
    if hidden:
        return f"Import it by name: import warp.{hidden.group(1)}."
    version = getattr(warp, "__version__", "installed here")
    return f"Warp {version} has no such name: install the version of Warp that the program was written for."


def _find_module(name: str, workspace: str, limit: int = 2_000) -> str | None:
    """A file of the workspace that would be this module."""
    for count, (folder, folders, files) in enumerate(os.walk(workspace)):
        folders[:] = [f for f in folders if not f.startswith(".") and f not in ("site-packages", "node_modules")]
        if name + ".py" in files:
            return os.path.join(folder, name + ".py")
        if name in folders and os.path.isfile(os.path.join(folder, name, "__init__.py")):
            return os.path.join(folder, name)
        if count > limit:
            break
    return None


def _file_advice(filename: Any, script: str | None, cwd: str) -> str:
    filename = os.fsdecode(filename) if isinstance(filename, (str, bytes, os.PathLike)) else str(filename)
    if os.path.isabs(filename):
        return f"There is no {filename}."
    folder = os.path.dirname(script) if script else None
    if folder is not None and os.path.exists(os.path.join(folder, filename)):
        return f"{filename} was looked for in {cwd} but lies beside the script: use {folder} as cwd."
    return f"{filename} is relative to the working folder {cwd}: run the program from the folder that holds the file."


def _refused(error: SystemExit) -> str | None:
    """What argparse said of the arguments; empty where it printed its help, None where it was not argparse."""
    frames = [e.tb_frame for e in _entries(error.__traceback__) if os.path.basename(_filename(e)) == "argparse.py"]
    said = [f.f_locals.get("message") for f in frames if f.f_code.co_name == "error"]
    return str(said[-1]) if said else "" if frames else None


def _exit_advice(error: SystemExit) -> str:
    if _refused(error) is not None:
        return "The program refused its arguments (its message is in the output): correct the arguments of the job."
    return "The program ended itself before it was done: its output says why."


# What Warp says -> what to change. The first match counts.
_ADVICE = [
    (
        r"Invalid device identifier: cuda|\"cuda\" device requested|[Nn]o CUDA device|Invalid CUDA device",
        "The program asks for a CUDA device and this machine has none that Warp can use: "
        "run it on the CPU (device cpu, or wp.set_device('cpu')), or on a machine with an NVIDIA GPU and driver.",
    ),
    (
        r"Referencing undefined symbol",
        "{kernel} uses a name that is not defined when it is compiled: define it at module level, as a constant "
        "or a @wp.func, before the first launch.",
    ),
    (
        r"Could not find function",
        "{kernel} calls a function that Warp does not know: correct the name, or decorate it with @wp.func.",
    ),
    (
        r"not supported in kernels",
        "Kernels support a subset of Python: write this statement with plain loops and assignments.",
    ),
    (
        r"Input types must be the same|Couldn't find function overload|different types",
        "Kernels do not mix types: convert one side, for example float(i), or write 1.0 instead of 1.",
    ),
    (
        r"mutating a constant .* inside a dynamic loop",
        "Declare the variable as dynamic before the loop, for example s = float(0.0).",
    ),
    (
        r"Incomplete argument annotations",
        "Give every argument of {kernel} a type, for example x: wp.array(dtype=float).",
    ),
    (
        r"passed \d+ arguments but kernel requires",
        "inputs and outputs of this launch together must list the arguments of {kernel}, one each, in their order.",
    ),
    (
        r"Error launching kernel",
        "Correct this argument of the launch of {kernel}: its type must be the one in the kernel's signature.",
    ),
    (
        r"build failed|[Ff]ailed to build|nvrtc",
        "The generated code did not compile: the compiler's message is in the program's output.",
    ),
    (
        r"scalar loss functions",
        "backward() needs a loss of one element: reduce it to an array of shape (1,), or pass seeds with grads=.",
    ),
]

"""The user's words: variable names of arrays, and the user's own line behind an event."""

from __future__ import annotations

import ast
import linecache
import os
import re
import sys
import types
from collections import deque
from typing import Any, Iterable, Mapping

from .arrays import is_array, struct_fields

MAX_VISITS = 6000  # objects looked at in one search; a model with more arrays keeps its allocation names
MAX_DEPTH = 5  # `trainer.model.layers[3].weight` has four steps
MAX_CONTAINER = 4096  # longer lists are data, not collections of arrays
MAX_ALIASES = 6
MOST_CALLERS = 12  # of a launch that are kept

_PROBE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_LEAF_TYPES = (
    int,
    float,
    complex,
    str,
    bytes,
    bool,
    type(None),
    type,
    types.FunctionType,
    types.ModuleType,
    types.BuiltinFunctionType,
    types.MethodType,
)


class Origins:
    """Tells the user's frames from Warp's, the probe's and the interpreter's own (one decision a file)."""

    def __init__(self, warp_folder: str, workspace: str | None = None):
        self._skipped = (warp_folder + os.sep, _PROBE)
        self._programs = os.path.join(warp_folder, "examples", "")  # installed with Warp, and no part of it
        self._workspace = os.path.join(os.path.realpath(workspace), "") if workspace else ""
        self._own: dict[str, bool] = {}  # by file name, as below
        self._packages: dict[str, str] = {}
        self._known: dict[str, bool] = {}  # by file name: strings keep their hash, code objects compute it anew

    def is_user(self, code: types.CodeType) -> bool:
        name = code.co_filename
        known = self._known.get(name)
        if known is None:
            inside = name.startswith(self._skipped) and not name.startswith(self._programs)
            known = not (inside or name.startswith("<frozen"))
            self._known[name] = known
        return known

    def frame(self, depth: int = 1) -> types.FrameType | None:
        """The nearest frame that is neither Warp's nor ours; None where the event came from neither."""
        frame: types.FrameType | None = sys._getframe(depth)
        known = self._known
        while frame is not None:
            name = frame.f_code.co_filename
            if known[name] if name in known else self.is_user(frame.f_code):
                return frame
            frame = frame.f_back
        return None

    def taker(self, frame: types.FrameType) -> types.FrameType | None:
        """The caller that a value goes to which this frame returns in the statement it is at; None where it keeps it."""
        found: types.FrameType | None = frame
        while found is not None and _returns(found.f_code.co_filename, found.f_lineno):
            found = found.f_back
        return found if found is not frame and found is not None and self.is_user(found.f_code) else None

    def is_own(self, file: str) -> bool:
        """Whether the file is of the user's workspace; a library that they call is not, wherever it is installed."""
        known = self._own.get(file)
        if known is None:
            inside = not self._workspace or os.path.realpath(file).startswith(self._workspace)
            known = self._own[file] = inside and "site-packages" not in file
        return known

    def located(self, frame: types.FrameType | None) -> dict[str, Any] | None:
        """`place` of a frame; for one in a library or a package also `via`, the user's own line that called it."""
        found = place(frame)
        if found is None:
            return None
        package = self._package(found["file"])
        if self.is_own(found["file"]) and not package:
            return found
        outside = (f for f in self.frames(frame) if not (package and f.f_code.co_filename.startswith(package)))
        caller = next((f for f in outside if self.is_own(f.f_code.co_filename)), None)
        if caller is not None:
            found["via"] = {"file": caller.f_code.co_filename, "line": caller.f_lineno}
        return found

    def _package(self, file: str) -> str:
        """The folder of the outermost package of the workspace that a file lies in (a checkout of a library); ''."""
        known = self._packages.get(file)
        if known is None:
            folder, known = os.path.dirname(file), ""
            while self.is_own(file) and os.path.isfile(os.path.join(folder, "__init__.py")):
                folder, known = os.path.dirname(folder), os.path.join(folder, "")
            self._packages[file] = known
        return known

    def own_lines(self, frame: types.FrameType | None) -> list[tuple[str, int]]:
        """(file, line) of the frame and its callers in the workspace, innermost first."""
        found = [(f.f_code.co_filename, f.f_lineno) for f in self.frames(frame)]
        return [at for at in found if self.is_own(at[0])][:MOST_CALLERS]

    def frames(self, frame: types.FrameType | None) -> Iterable[types.FrameType]:
        """The frame and its callers, innermost first, the user's only."""
        while frame is not None:
            if self.is_user(frame.f_code):
                yield frame
            frame = frame.f_back


def place(frame: types.FrameType | None) -> dict[str, Any] | None:
    """{'file', 'line', 'function'} of a frame."""
    if frame is None:
        return None
    return {"file": frame.f_code.co_filename, "line": frame.f_lineno, "function": frame.f_code.co_name}


def _returns(file: str, line: int) -> bool:
    return linecache.getline(file, line).lstrip().startswith("return ")


_targets: dict[tuple[str, int], str | None] = {}


def assigned_name(file: str, line: int) -> str | None:
    """What the statement at `file:line` assigns to: 'self.kappa', 'loss', 'self.beams[]' for an append.

    Used for arrays that no live variable holds any more, and for those created and appended in one line.
    """
    key = (file, line)
    if key not in _targets:
        _targets[key] = _find_target(file, line)
    return _targets[key]


_trees: dict[str, ast.Module | None] = {}


def _tree(file: str) -> ast.Module | None:
    if file not in _trees:
        try:
            _trees[file] = ast.parse("".join(linecache.getlines(file)))
        except (SyntaxError, ValueError):
            _trees[file] = None
    return _trees[file]


def _find_target(file: str, line: int) -> str | None:
    tree = _tree(file)
    best: ast.stmt | None = None
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)] if tree else []
    for node in statements:
        inside = node.lineno <= line <= (node.end_lineno or node.lineno)
        if inside and (best is None or node.lineno >= best.lineno):
            best = node
    if (
        isinstance(best, ast.Assign)
        and len(best.targets) == 1
        and isinstance(best.targets[0], (ast.Name, ast.Attribute, ast.Subscript))
    ):
        return ast.unparse(best.targets[0])
    if isinstance(best, (ast.AnnAssign, ast.AugAssign)):
        return ast.unparse(best.target) + ("[]" if isinstance(best, ast.AugAssign) else "")
    if (
        isinstance(best, ast.Expr)
        and isinstance(best.value, ast.Call)
        and isinstance(best.value.func, ast.Attribute)
        and best.value.func.attr == "append"
    ):
        return ast.unparse(best.value.func.value) + "[]"
    return None


def find(
    arrays: dict[int, Any], frames: Iterable[types.FrameType], arguments: Mapping[str, Any] | None = None
) -> dict[int, list[str]]:
    """Names for `arrays` (keyed by id) as the arguments and the given frames can say them, shortest first.

    Returns {id: ['kappa', 'self.kappa', ...]}; a loop variable that happens to hold the array comes last
    (`weights[2]` says more than the `w` of `for w in weights`).
    """
    frames = list(frames)
    found: dict[int, list[str]] = {}
    passing = frozenset().union(*(_loop_variables(frame.f_code) for frame in frames))
    for path, array in (*reachable_from((arguments or {}).items()), *reachable(frames)):
        if id(array) in arrays:
            names = found.setdefault(id(array), [])
            if path not in names and len(names) < MAX_ALIASES:
                names.append(path)
    return {key: sorted(listed, key=lambda path: _HEAD.split(path)[0] in passing) for key, listed in found.items()}


def reachable(frames: Iterable[types.FrameType]) -> Iterable[tuple[str, Any]]:
    """(path, array) for the arrays that the frames can name, shortest paths first.

    Looks through locals, then each frame's module globals, into attributes, lists, tuples, dictionaries and
    wp.struct fields.
    """
    variables: list[tuple[str, Any]] = []
    modules: set[int] = set()
    for frame in frames:
        if frame.f_code.co_name != "<module>":
            variables.extend(frame.f_locals.items())
        if id(frame.f_globals) not in modules:
            modules.add(id(frame.f_globals))
            variables.extend(frame.f_globals.items())
    return reachable_from((name, value) for name, value in variables if not name.startswith("__"))


def reachable_from(variables: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, Any]]:
    """(path, array) for the arrays that the named values are or hold, shortest paths first."""
    seen: set[int] = set()
    visits = 0
    queue: deque[tuple[str, Any, int]] = deque((name, value, 0) for name, value in variables)
    while queue and visits < MAX_VISITS:
        path, value, depth = queue.popleft()
        visits += 1
        if is_array(value):
            yield path, value
            continue
        if isinstance(value, _LEAF_TYPES) or depth >= MAX_DEPTH or id(value) in seen:
            continue
        seen.add(id(value))
        queue.extend((path + step, child, depth + 1) for step, child in _children(value))


_HEAD = re.compile(r"[.\[]")
_loops: dict[types.CodeType, frozenset[str]] = {}


def _is_source_of(node: ast.AST, code: types.CodeType) -> bool:
    if isinstance(node, ast.Module):
        return code.co_name == "<module>"
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    return node.name == code.co_name and code.co_firstlineno == first


def _loop_variables(code: types.CodeType) -> frozenset[str]:
    """The names that `for` statements assign in the source of `code`."""
    if code not in _loops:
        tree = _tree(code.co_filename)
        bodies = [node for node in ast.walk(tree) if _is_source_of(node, code)] if tree is not None else []
        loops = [node for body in bodies for node in ast.walk(body) if isinstance(node, (ast.For, ast.AsyncFor))]
        targets = [name for loop in loops for name in ast.walk(loop.target) if isinstance(name, ast.Name)]
        _loops[code] = frozenset(name.id for name in targets)
    return _loops[code]


def _children(value: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(value, dict):
        return [(f"[{key!r}]", child) for key, child in list(value.items())[:MAX_CONTAINER]]
    if isinstance(value, (list, tuple)):
        return [(f"[{i}]", child) for i, child in enumerate(value)] if len(value) <= MAX_CONTAINER else []
    fields = struct_fields(value)
    if fields is not None:
        return [(f".{name}", child) for name, child in fields]
    module = type(value).__module__ or ""
    if module.split(".")[0] in ("warp", "numpy", "builtins", "torch", "jax") and not module.startswith("warp.optim"):
        return []
    attributes = getattr(value, "__dict__", None)
    if not isinstance(attributes, dict):
        return []
    return [(f".{name}", child) for name, child in list(attributes.items())[:MAX_CONTAINER]]

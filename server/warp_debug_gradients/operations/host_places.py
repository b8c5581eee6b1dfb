"""Lines of the host code behind a measured fault: where a tape starts, what resets, rebinds or bypasses. Static.

Source text in, lines out; `*_place` take and give a {"file", "line"}. Never a finding by itself.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from warp_debug_gradients.operations.constructs import called, parsed
from warp_debug_gradients.records import Place
from warp_debug_gradients.workspace import Workspace

PLAIN_MAKERS = {"zeros", "ones", "empty", "full", "zeros_like", "empty_like", "range"}  # make an array, need no adjoint
RECORDED = {"launch", "launch_tiled", "copy", "clone"}
LIBRARIES = {"wp", "warp", "np", "numpy", "scipy", "torch", "jax", "cupy"}  # by the names that programs give them
READS = {"print", "append", "float", "backward"}  # statements that only look at a value


class UnrecordedPlace(Place, total=False):
    """A write that the tape does not record. host: whether NumPy takes part."""

    host: bool


class Line(NamedTuple):
    """A line, and the source of its file."""

    file: str
    line: int
    source: str


def line_at(workspace: Workspace, place: Place | None) -> Line | None:
    """The line that a place is, if its file can be read."""
    file, line = (place.get("file"), place.get("line")) if place else (None, None)
    if not file or not line or not (workspace.root / file).is_file():
        return None
    return Line(file, line, (workspace.root / file).read_text(errors="replace"))


# -- tapes


def tape_place(workspace: Workspace, backward: Place | None) -> Place | None:
    """Where the tape starts whose `backward` is called at `backward`, from the source; that call if it is not found."""
    call = line_at(workspace, backward)
    line = tape_start(call.source, call.line) if call else None
    return {"file": call.file, "line": line} if call and line else backward


def tape_start(source: str, backward_line: int) -> int | None:
    """The line of the `with` that records the tape on which `backward` is called at `backward_line`."""
    tree = parsed(source)
    if tree is None:
        return None
    around = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and _covers(n, backward_line)]
    scope: ast.AST = max(around, key=lambda n: n.lineno) if around else tree
    tapes = {
        ast.unparse(n.func.value)
        for n in ast.walk(scope)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "backward"
        if n.lineno <= backward_line <= (n.end_lineno or n.lineno)
    }
    starts = [
        n.lineno
        for n in ast.walk(scope)
        if isinstance(n, ast.With) and n.lineno <= backward_line and any(_is_tape(item, tapes) for item in n.items)
    ]
    return max(starts, default=None)


def _is_tape(item: ast.withitem, tapes: set[str]) -> bool:
    bound = ast.unparse(item.optional_vars) if item.optional_vars else None
    made = isinstance(item.context_expr, ast.Call) and called(item.context_expr) == "Tape"
    return ast.unparse(item.context_expr) in tapes or bound in tapes or (made and not tapes)


def _covers(node: ast.FunctionDef, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def cut_place(workspace: Workspace, tape: Place | None, windows: int) -> Place | None:
    """Where a chain is cut: the loop before the only tape, with steps like those that it records; else the tape's start."""
    start = line_at(workspace, tape) if windows <= 1 else None
    line = unrecorded_loop(start.source, start.line) if start else None
    return {"file": start.file, "line": line} if start and line else tape


def unrecorded_loop(source: str, tape: int) -> int | None:
    """The loop in front of a tape's `with`, in the same block, that calls what the tape records as well."""
    tree = parsed(source)
    for block in (b for n in ast.walk(tree or ast.Module([], [])) for b in blocks(n)):
        position = next((k for k, n in enumerate(block) if isinstance(n, ast.With) and n.lineno == tape), None)
        if position is None:
            continue
        recorded = all_calls(block[position])
        loops = [n for n in block[:position] if isinstance(n, (ast.For, ast.While))]
        return next((n.lineno for n in reversed(loops) if all_calls(n) & recorded), None)
    return None


def blocks(node: ast.AST) -> list[list[ast.stmt]]:
    """The lists of statements that a statement holds."""
    return [b for name in ("body", "orelse", "finalbody") if isinstance(b := getattr(node, name, None), list)]


def all_calls(node: ast.AST) -> set[str]:
    """What is called in it: functions as written, kernels by their launch."""
    found: set[str] = set()
    for n in ast.walk(node):
        if isinstance(n, ast.Call):
            launched = called(n) in ("launch", "launch_tiled") and n.args
            found.add(f"launch {ast.unparse(n.args[0])}" if launched else ast.unparse(n.func))
    return found - {"range", "print", "len", "int", "float"}


# -- what happens to an array


def swap_place(workspace: Workspace, writer: Place) -> Place | None:
    """`swap_line` for a place."""
    written = line_at(workspace, writer)
    line = swap_line(written.source, written.line) if written else None
    return {"file": written.file, "line": line} if written and line else None


def swap_line(source: str, line: int) -> int | None:
    """`a, b = b, a` in the loop (or else the function) of the statement at `line`, if that statement uses one of them:
    by this two arrays take turns, and the next round writes what this one has read."""
    tree = parsed(source)
    scopes = [n for n in ast.walk(tree or ast.Module([], [])) if isinstance(n, (ast.For, ast.While, ast.FunctionDef))]
    around = [n for n in scopes if n.lineno <= line <= (n.end_lineno or n.lineno)]
    if not around:
        return None
    scope = max(around, key=lambda n: n.lineno)
    at_line = [n for n in ast.walk(scope) if isinstance(n, ast.Call) and n.lineno <= line <= (n.end_lineno or n.lineno)]
    used = {ast.unparse(n) for call in at_line for n in ast.walk(call) if isinstance(n, (ast.Name, ast.Attribute))}
    for node in (n for n in ast.walk(scope) if isinstance(n, ast.Assign)):
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            left, right = [ast.unparse(e) for e in target.elts], [ast.unparse(e) for e in value.elts]
            if left != right and set(left) == set(right) and used & set(left):
                return node.lineno
    return None


def unrecorded_writer(source: str, tape: int, backward: int, variable: str) -> tuple[int, bool] | None:
    """Between a tape's start and its backward call, the statement that touches `variable` and that no tape records:
    in the `with` what is no launch or copy, behind it any. Returns its line, and whether NumPy takes part."""
    tree = parsed(source)
    if tree is None:
        return None
    recording = next((n for n in ast.walk(tree) if isinstance(n, ast.With) and n.lineno == tape), None)
    if recording is None:
        return None
    end = recording.end_lineno or tape
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr)) or not tape < node.lineno < backward:
            continue
        text = ast.unparse(node)
        calls = {called(n) for n in ast.walk(node) if isinstance(n, ast.Call)}
        touched = any(ast.unparse(n) == variable for n in ast.walk(node) if isinstance(n, (ast.Name, ast.Attribute)))
        if not touched or not calls or calls & READS:
            continue
        recorded = node.lineno <= end and (bool(calls & RECORDED) or _may_launch(node, tree, variable))
        if not recorded and not calls <= PLAIN_MAKERS:
            return node.lineno, "numpy" in text or "np." in text
    return None


def _may_launch(statement: ast.stmt, tree: ast.Module, variable: str) -> bool:
    """Whether `variable` is handed to functions of the user's that may launch: those of this file that call one that
    does; of others nothing is known. Its own methods, NumPy and Warp's utilities launch nothing that a tape records."""
    functions = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}

    def launches(name: str, seen: set[str]) -> bool:
        if name in RECORDED or name in seen or name not in functions:
            return name in RECORDED
        inner = {called(n) for n in ast.walk(functions[name]) if isinstance(n, ast.Call)}
        return any(launches(each, {*seen, name}) for each in inner)

    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)]
    handed = [c for c in calls if any(ast.unparse(n) == variable for n in ast.walk(c))] or calls
    return not any(
        ast.unparse(c.func).startswith(f"{variable}.")
        or ast.unparse(c.func).split(".")[0] in LIBRARIES
        or (called(c) in functions and not launches(called(c), set()))
        for c in handed
    )


def numpy_write(source: str, variable: str) -> int | None:
    """The innermost statement that writes into a NumPy view of `variable`: `view = x.numpy()` ... `view[...] = ...`."""
    tree = parsed(source)
    if tree is None:
        return None
    views = {f"{variable}.numpy()"}
    for node in (n for n in ast.walk(tree) if isinstance(n, ast.Assign)):
        value = ast.unparse(node.value)
        if any(view in value for view in views) and ".copy(" not in value and "np.array(" not in value:
            views |= {ast.unparse(target) for target in node.targets}
    places = [
        (-node.col_offset, node.lineno)  # a write in an inner loop is likelier than one that prepares
        for node in ast.walk(tree)
        if isinstance(node, (ast.Assign, ast.AugAssign))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Subscript) and ast.unparse(target.value) in views
    ]
    return min(places)[1] if places else None


def zeroing_line(source: str, backward: int, read: int) -> int | None:
    """The line between backward and the read of the gradient that zeroes it."""
    tree = parsed(source)
    if tree is None:
        return None
    found = [
        n.lineno
        for n in ast.walk(tree)
        if isinstance(n, ast.Call)
        and called(n) in ("zero", "zero_", "zero_grad", "fill_")
        and backward < n.lineno <= read
    ]
    return min(found, default=None)


def zeroing_place(workspace: Workspace, backward: Place | None, read: Place) -> Place | None:
    """`zeroing_line` for two places of one file."""
    call, reading = line_at(workspace, backward), line_at(workspace, read)
    if call is None or reading is None or call.file != reading.file:
        return None
    line = zeroing_line(reading.source, call.line, reading.line)
    return {"file": reading.file, "line": line} if line else None

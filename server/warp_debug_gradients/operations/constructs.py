"""Constructs of a kernel's source that can break its adjoint. Static: source text in, places out.

A hint about *why* a launch that was measured to jump is wrong; never a finding by itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from warp_debug_gradients.records import Place

REPAIRS = {
    "inplace_muldiv": "Write the product to another variable or array instead of `*=` or `/=` in place.",
    "component_reassignment": "Build the vector or matrix once with its constructor (wp.vec3(...)), "
    "or set enable_vector_component_overwrites=True.",
    "dynamic_loop": "Give the loop a fixed bound without break/continue, or split it into one launch a pass.",
    "custom_gradient": "Correct the @wp.func_grad: the formula, and `+=` on wp.adjoint[...].",
    "replay_side_effect": "Add a @wp.func_replay that returns what the forward pass got, "
    "or count outside of the differentiated kernel.",
    "native_without_adjoint": "Give the native snippet an adjoint (adj_snippet=...), or write it as a @wp.func. A "
    "builtin that reads a mesh by its id has none for the mesh: read the vertices from an array in the kernel.",
    "singular_point": "Keep the argument away from the singular point (add a small constant under sqrt or in the "
    "denominator) in the forward pass.",
    "where_overflow": "Guard the argument of the unselected branch as well (clamp it before the function).",
    "warp_defect": "Compare this kernel's adjoint by itself with differences; try the newest Warp.",
    "copy": "Use a kernel instead of this copy, or the newest Warp.",
}
SINGULAR = {"sqrt", "log", "acos", "asin", "pow", "length", "normalize", "atan2"}
MESH_READS = {
    "mesh_eval_position",
    "mesh_eval_velocity",
    "mesh_eval_face_normal",
    "mesh_get_point",
    "mesh_get_velocity",
}
POISON = SINGULAR | {"exp"}  # can overflow in the branch that is not taken
ATOMICS = {"atomic_add", "atomic_sub", "atomic_min", "atomic_max", "atomic_cas", "atomic_exch"}


@dataclass(frozen=True)
class Construct:
    """A suspicious piece of a kernel or of a function that it calls."""

    code: str
    file: str
    line: int
    text: str
    variable: str | None = None

    @property
    def place(self) -> Place:
        """Where it is."""
        return {"file": self.file, "line": self.line}


def find_constructs(source: str, file: str, kernel: str) -> list[Construct]:
    """What is suspicious in `kernel` and in the functions of the same file that it calls, the most telling first."""
    tree, reached = _reached_from(source, kernel)
    if tree is None:
        return []
    rows = source.splitlines()
    found: list[Construct] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and _gradient_of(node) in {f.name for f in reached}:
            line = next((n.lineno for n in ast.walk(node) if isinstance(n, ast.stmt) and _sets_adjoint(n)), node.lineno)
            text = f"custom gradient of {_gradient_of(node)}: {rows[line - 1].strip()[:80]}"
            found.append(Construct("custom_gradient", file, line, text))
    for function in reached:
        replayed = any(isinstance(n, ast.FunctionDef) and _replay_of(n) == function.name for n in ast.walk(tree))
        for code, node, variable in _suspects(function, replayed):
            line = getattr(node, "lineno", function.lineno)
            found.append(Construct(code, file, line, rows[line - 1].strip()[:90], variable))
    unique: dict[tuple[str, int], Construct] = {}
    for construct in found:
        unique.setdefault((construct.code, construct.line), construct)
    first: dict[str, Construct] = {}
    for construct in unique.values():
        first.setdefault(construct.code, construct)
    return list(first.values())


def imported_calls(source: str, kernel: str) -> set[str]:
    """Functions that `kernel` calls, itself or by others of its file, and that the file imports (not from Warp)."""
    tree, reached = _reached_from(source, kernel)
    if tree is None:
        return set()
    modules: set[str] = set()
    names: dict[str, str] = {}  # as called here -> as defined there
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {(a.asname or a.name).split(".")[0] for a in node.names if a.name.split(".")[0] != "warp"}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] != "warp":
            names |= {a.asname or a.name: a.name for a in node.names}
    found: set[str] = set()
    for call in (n for function in reached for n in ast.walk(function) if isinstance(n, ast.Call)):
        owner, _, name = ast.unparse(call.func).rpartition(".")
        if not owner and name in names:
            found.add(names[name])
        elif owner and owner.split(".")[0] in modules | names.keys():
            found.add(name)
    return found


def _reached_from(source: str, kernel: str) -> tuple[ast.Module | None, list[ast.FunctionDef]]:
    """The syntax tree, and `kernel` with the functions of the file that it calls; (None, []) where it is not there."""
    tree = parsed(source)
    if tree is None:
        return None, []
    functions: dict[str, ast.FunctionDef] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and not _gradient_of(node):
            functions.setdefault(node.name, node)
    name = kernel.rsplit(".", 1)[-1]
    start = functions.get(name) or next((f for f in functions.values() if kernel.startswith(f.name)), None)
    return (tree, _reached(start, functions)) if start else (None, [])


def _suspects(function: ast.FunctionDef, replayed: bool) -> Iterator[tuple[str, ast.AST, str | None]]:
    if any("func_native" in ast.unparse(d) and "adj_snippet" not in ast.unparse(d) for d in function.decorator_list):
        yield "native_without_adjoint", function, None
    for node in ast.walk(function):  # their adjoints do not reach the arrays of the mesh
        if isinstance(node, ast.Call) and called(node) in MESH_READS:
            yield "native_without_adjoint", node, None
    arrays = {a.arg for a in function.args.args if a.annotation and "array" in ast.unparse(a.annotation)}
    assigned: dict[str, int] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Mult, ast.Div)):
            if isinstance(node.target, (ast.Subscript, ast.Attribute)):
                yield "inplace_muldiv", node, _base(node.target)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Subscript) and _multiplies(node.value, ast.unparse(target)):
                yield "inplace_muldiv", node, _base(target)
            if isinstance(target, (ast.Subscript, ast.Attribute)) and _base(target) not in arrays:
                key = ast.unparse(target)
                assigned[key] = assigned.get(key, 0) + 1
                if assigned[key] == 2 or key in ast.unparse(node.value):
                    yield "component_reassignment", node, _base(target)
        if not replayed and _uses_atomic(node):
            yield "replay_side_effect", node, None
        if isinstance(node, ast.While) or (
            isinstance(node, ast.For)
            and (_varies(node) or any(isinstance(n, (ast.Break, ast.Continue)) for n in ast.walk(node)))
        ):
            yield "dynamic_loop", node, None
        if isinstance(node, ast.Call) and called(node) in ("where", "select"):
            branches = [part for a in node.args[1:] for part in (a, *_defined(function, a))]
            inner = {called(n) for b in branches for n in ast.walk(b) if isinstance(n, ast.Call)}
            divides = any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div) for b in branches for n in ast.walk(b))
            if inner & POISON or divides:
                yield "where_overflow", node, None
        if isinstance(node, ast.Call) and called(node) in SINGULAR:
            yield "singular_point", node, None


def _uses_atomic(node: ast.AST) -> bool:
    """A statement that uses the value which an atomic operation returns; one that drops it counts nothing."""
    if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return)) or node.value is None:
        return False
    targets = node.targets if isinstance(node, ast.Assign) else []
    parts = [node.value, *targets]
    return any(isinstance(n, ast.Call) and called(n) in ATOMICS for part in parts for n in ast.walk(part))


def _defined(function: ast.FunctionDef, expression: ast.expr) -> list[ast.expr]:
    """What the function assigns to the names in an expression."""
    names = {n.id for n in ast.walk(expression) if isinstance(n, ast.Name)}
    return [
        n.value
        for n in ast.walk(function)
        if isinstance(n, ast.Assign) and any(isinstance(t, ast.Name) and t.id in names for t in n.targets)
    ]


def _varies(loop: ast.For) -> bool:
    """A loop whose bound is read from an array, or whose body carries a local from pass to pass non-additively."""
    bound = any(isinstance(n, ast.Subscript) for n in ast.walk(loop.iter))
    names = {n.id for n in ast.walk(loop.iter) if isinstance(n, ast.Name) and n.id not in ("range", "int")}
    return bound or bool(names and _carries(loop))


def _carries(loop: ast.For) -> bool:
    """Whether a pass reads a local that the pass before assigned, not only adds to it: `mid = t * a; t = mid * b` does."""
    read: set[str] = set()  # of the pass before, as far as it assigned them
    fresh: set[str] = set()  # assigned in this pass, whatever the branch
    for statement in (n for n in _in_order(loop) if isinstance(n, ast.stmt) and n is not loop):
        parts = [n for n in ast.iter_child_nodes(statement) if not isinstance(n, ast.stmt)]
        loads = {n.id for p in parts for n in ast.walk(p) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        read |= loads - fresh
        targets: list[ast.expr] = statement.targets if isinstance(statement, ast.Assign) else []
        made = {t.id for t in targets if isinstance(t, ast.Name)}
        if made & read:
            return True
        fresh |= made if statement in loop.body else set()
    return False


def _multiplies(value: ast.expr, target: str) -> bool:
    """`a[i] * ...` or `a[i] / ...` on the right of an assignment to `a[i]`."""
    return any(
        isinstance(n, ast.BinOp)
        and isinstance(n.op, (ast.Mult, ast.Div))
        and target in (ast.unparse(n.left), ast.unparse(n.right))
        for n in ast.walk(value)
    )


def _reached(start: ast.FunctionDef, functions: dict[str, ast.FunctionDef]) -> list[ast.FunctionDef]:
    reached: list[ast.FunctionDef] = []
    queue = [start]
    while queue:
        function = queue.pop(0)
        if function in reached:
            continue
        reached.append(function)
        calls = [called(n) for n in ast.walk(function) if isinstance(n, ast.Call)]
        queue += [functions[c] for c in calls if c in functions]
    return reached


def _sets_adjoint(node: ast.stmt) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
    return any("adjoint[" in ast.unparse(target) for target in targets)


def _gradient_of(node: ast.FunctionDef) -> str | None:
    return _decorated(node, "func_grad")


def _replay_of(node: ast.FunctionDef) -> str | None:
    return _decorated(node, "func_replay")


def _decorated(node: ast.FunctionDef, name: str) -> str | None:
    for d in node.decorator_list:
        if isinstance(d, ast.Call) and called(d) == name and d.args:
            return ast.unparse(d.args[0]).rsplit(".", 1)[-1]
    return None


@lru_cache(maxsize=16)  # one file is asked about loop by loop, launch by launch
def parsed(source: str) -> ast.Module | None:
    """The syntax tree, if the source has one. It is shared: to be looked at, not changed."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        return None


def called(call: ast.Call) -> str:
    return ast.unparse(call.func).rsplit(".", 1)[-1]


def _base(target: ast.expr) -> str | None:
    while isinstance(target, (ast.Subscript, ast.Attribute)):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None


def difference_line(source: str, kernel: str, argument: str) -> int | None:
    """The first line of a kernel that adds to, or takes something from, what it reads of an argument."""
    tree = parsed(source)
    functions = [n for n in ast.walk(tree or ast.Module([], [])) if isinstance(n, ast.FunctionDef) and n.name == kernel]
    names, label = {argument.split(".")[0]}, argument.rpartition(".")[2]
    for node in (n for function in functions for n in _in_order(function)):
        if isinstance(node, ast.Assign):
            if _reads(node.value, names, label):  # p = points[i]
                names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            sides = (node.left, node.right)
            if any(_reads(side, names, label) for side in sides):
                return node.lineno
    return None


def _in_order(function: ast.AST) -> list[ast.stmt | ast.expr]:
    """What stands in it, line by line; a statement before what it is made of."""
    found = [n for n in ast.walk(function) if isinstance(n, (ast.stmt, ast.expr))]
    return sorted(found, key=lambda n: (n.lineno, not isinstance(n, ast.stmt)))


def _reads(node: ast.AST, names: set[str], field: str) -> bool:
    """Whether an expression is an element of one of these, or of such a field, or one of these by itself."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Attribute):
        return node.attr == field
    return isinstance(node, ast.Name) and node.id in names

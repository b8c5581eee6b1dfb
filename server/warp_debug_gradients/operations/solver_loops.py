"""The loops of launches that their author calls a solver's, and the constant that counts their passes.

`for _ in range(COUNT)`: the count may be a constant of the module or of another one, an attribute that a class sets to a number
(a dataclass of options, `self.sweeps` in `__init__`), a parameter of the function around the loop: then its default, or what
the calls hand over; or a number in the loop itself, the only one of its function. Only what an override can replace is found;
nothing is run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from warp_debug_gradients.operations.constructs import called, parsed

SOLVER_WORDS = {
    "sweep", "iter", "iteration", "relax", "relaxation", "jacobi", "seidel", "sor", "newton", "picard", "solve", "solver",
    "converge", "settle", "residual", "multigrid", "cg", "pcg", "gmres", "smooth", "project", "equilibrium", "equilibrate",
}  # fmt: skip
TIME_WORDS = {"step", "substep", "timestep", "time", "tick", "frame", "horizon", "epoch", "hour", "day", "second"}
DEPTH = 3  # from parameter to the calls of the function, and on

Function = ast.FunctionDef | None


@dataclass(frozen=True)
class SolverLoop:
    """A loop of launches that looks like a solver's, and the constant that counts its passes."""

    knob: str  # as overrides name it
    count: int
    file: str
    line: int  # of the constant
    kernels: tuple[str, ...] = ()  # what it launches, where that is the name of a kernel


@dataclass(frozen=True)
class Source:
    """A file of the workspace that the program loads."""

    module: str
    file: str
    tree: ast.Module


def read(path: Path, file: str) -> Source | None:
    """The file as a module of the name by which overrides know it; None where it cannot be parsed."""
    tree = parsed(path.read_text(errors="replace"))
    parts, folder = [path.stem], path.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return Source(".".join(parts).removesuffix(".__init__"), file, tree) if isinstance(tree, ast.Module) else None


def solver_loops(sources: list[Source]) -> list[SolverLoop]:
    """Loops over launches, that no tape is opened in, by whose names a solver passes."""
    found: dict[str, SolverLoop] = {}
    kernels = {name for source in sources for name in _kernels(source.tree)}
    for source in sources:
        for loop, around in _loops(source.tree):
            bound = _count(loop)
            launched = [ast.unparse(n.args[0]) for n in _calls(loop, "launch", "launch_tiled") if n.args]
            if bound is None or not launched or any(_calls(loop, "Tape", "backward")):
                continue
            constant = _constant(bound, around, source, sources, DEPTH)
            names = [ast.unparse(bound), *([constant.knob] if constant else [])]
            if constant is None or any(_has_word(name, TIME_WORDS) for name in names):
                continue  # a solver's kernel in a loop over time: the loop is the simulation's
            if any(_has_word(word, SOLVER_WORDS) for word in (*names, around.name if around else "", *launched)):
                own = (name.rsplit(".", 1)[-1] for name in launched)
                other = found.get(constant.knob, constant).kernels
                found[constant.knob] = replace(constant, kernels=(*other, *(name for name in own if name in kernels)))
    return sorted(found.values(), key=lambda loop: loop.knob.endswith(".range"))  # what has a name first


# -- from the bound of a loop to a constant -----------------------------------------------------------------------------


def _constant(
    expression: ast.expr, around: Function, source: Source, sources: list[Source], depth: int
) -> SolverLoop | None:
    """The constant that an expression names; None where there is none, or more than one."""
    if isinstance(expression, ast.Constant):
        return _written_out(expression, around, source)
    if isinstance(expression, ast.Attribute):
        return _only([*_attributes(expression.attr, sources), *_of_module(expression, sources)])
    if not isinstance(expression, ast.Name) or not depth:
        return None
    if around is not None and any(a.arg == expression.id for a in _parameters(around)):
        return _parameter(expression.id, around, source, sources, depth)
    own = _assigned(source.tree.body, expression.id, source, "")
    return _only(own or _imported(expression.id, source, sources))


def _written_out(number: ast.Constant, around: Function, source: Source) -> SolverLoop | None:
    """`range(12)`: the only number in a loop of its function."""
    counts = [_number(_count(loop)) for loop, _ in _loops(around)] if around is not None else []
    owner = _owner(source.tree, around) if around is not None else None
    own = [c for c in counts if c is not None]
    if around is None or owner is None or len(own) != 1:
        return None
    return SolverLoop(f"{source.module}.{owner}{around.name}.range", own[0], source.file, number.lineno)


def _parameter(
    name: str, function: ast.FunctionDef, source: Source, sources: list[Source], depth: int
) -> SolverLoop | None:
    """What the calls of the function hand over; its default where none does."""
    position = [a.arg for a in _parameters(function)].index(name)
    position -= bool(function.args.args) and function.args.args[0].arg in ("self", "cls")
    handed: list[SolverLoop | None] = []
    for other in sources:
        for call, caller in _calls_of(other.tree, function.name):
            value = next((k.value for k in call.keywords if k.arg == name), None)
            if value is None and position < len(call.args):
                value = call.args[position]
            if value is not None:
                handed.append(_constant(value, caller, other, sources, depth - 1))
    if handed:
        return None if None in handed else _only([c for c in handed if c is not None])
    default = _default(function, name)
    owner, count = _owner(source.tree, function), _number(default)
    if owner is None or count is None:
        return None
    return SolverLoop(f"{source.module}.{owner}{function.name}.{name}", count, source.file, function.lineno)


def _attributes(name: str, sources: list[Source]) -> list[SolverLoop]:
    """The numbers that classes set an attribute to: in their body, or in `__init__`."""
    found: list[SolverLoop] = []
    for source in sources:
        for node in source.tree.body:
            if isinstance(node, ast.ClassDef):
                found += _assigned(node.body, name, source, f"{node.name}.")
                for method in node.body:
                    if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                        found += _assigned(method.body, f"self.{name}", source, f"{node.name}.")
    return found


def _of_module(expression: ast.Attribute, sources: list[Source]) -> list[SolverLoop]:
    """`config.SWEEPS`: of the module of that name."""
    base = ast.unparse(expression.value)
    named = [s for s in sources if s.module == base or s.module.endswith(f".{base}")]
    return [c for s in named for c in _assigned(s.tree.body, expression.attr, s, "")]


def _imported(name: str, source: Source, sources: list[Source]) -> list[SolverLoop]:
    """`from config import SWEEPS`: where it is assigned."""
    for node in ast.walk(source.tree):
        for alias in node.names if isinstance(node, ast.ImportFrom) else ():
            if (alias.asname or alias.name) == name:
                last = (node.module or "").rsplit(".", 1)[-1]  # type: ignore[union-attr]
                named = [s for s in sources if s.module.rsplit(".", 1)[-1] == last]
                return [c for s in named for c in _assigned(s.tree.body, alias.name, s, "")]
    return []


def _assigned(body: list[ast.stmt], name: str, source: Source, owner: str) -> list[SolverLoop]:
    """`name = 40`, `name: int = 40` or `a, name = 1, 40` among the statements."""
    found: list[SolverLoop] = []
    for node in body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        for target in targets:
            value = getattr(node, "value", None)
            pairs = [(target, value)]
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = [*zip(target.elts, value.elts)]
            for each, given in pairs:
                count = _number(given)
                if count is not None and ast.unparse(each) == name:
                    knob = f"{source.module}.{owner}{name.removeprefix('self.')}"
                    found.append(SolverLoop(knob, count, source.file, node.lineno))
    return found


def _number(node: ast.expr | None) -> int | None:
    """A count of passes that stands there as a number."""
    value = node.value if isinstance(node, ast.Constant) else None
    return value if type(value) is int and value >= 1 else None


def _only(found: list[SolverLoop]) -> SolverLoop | None:
    return found[0] if found and all(each == found[0] for each in found) else None


# -- the syntax tree ----------------------------------------------------------------------------------------------------


def _parameters(function: ast.FunctionDef) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def _default(function: ast.FunctionDef, name: str) -> ast.Constant | None:
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(positional[::-1], arguments.defaults[::-1]), *zip(arguments.kwonlyargs, arguments.kw_defaults)]
    return next((d for a, d in pairs if a.arg == name and isinstance(d, ast.Constant)), None)


def _kernels(tree: ast.AST) -> Iterator[str]:
    """The names of the functions under `@wp.kernel`."""
    for node in ast.walk(tree):
        for decorator in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
            plain = decorator.func if isinstance(decorator, ast.Call) else decorator
            if ast.unparse(plain).rsplit(".", 1)[-1] == "kernel":
                yield node.name  # type: ignore[union-attr]


def _owner(tree: ast.Module, function: ast.FunctionDef) -> str | None:
    """'' for a function of the module, 'Class.' for a method; None for one inside of another."""
    if function in tree.body:
        return ""
    return next((f"{n.name}." for n in tree.body if isinstance(n, ast.ClassDef) and function in n.body), None)


def _loops(tree: ast.AST, around: Function = None) -> Iterator[tuple[ast.For, Function]]:
    """Every `for`, with the function that it stands in."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.For):
            yield node, around
        yield from _loops(node, node if isinstance(node, ast.FunctionDef) else around)


def _calls_of(tree: ast.AST, name: str, around: Function = None) -> Iterator[tuple[ast.Call, Function]]:
    """The calls of a function or method of that name, with the function that they stand in."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Call) and called(node) == name:
            yield node, around
        yield from _calls_of(node, name, node if isinstance(node, ast.FunctionDef) else around)


def _count(loop: ast.For) -> ast.expr | None:
    """COUNT of `range(COUNT)`."""
    call = loop.iter
    ranged = isinstance(call, ast.Call) and ast.unparse(call.func) == "range" and len(call.args) == 1
    return call.args[0] if ranged else None  # type: ignore[union-attr]


def _calls(node: ast.AST, *names: str) -> list[ast.Call]:
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
    return [n for n in calls if called(n) in names]


def _has_word(name: str, wanted: set[str]) -> bool:
    words = re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name.rsplit(".", 1)[-1]).lower())
    return any(word in wanted or word.rstrip("s") in wanted for word in words)

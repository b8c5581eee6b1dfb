"""What a kernel reads, writes, and *needs*: which array values its adjoint reads again.

`probe/access.py` says what a live kernel touches; this one works on source alone, and says more: a value counts as
needed only where the adjoint uses it. `y = x + 2 z` needs nothing of x; `y = x * x` needs x; `y = c * x` with an
array `c` needs x for the adjoint of c. A need names whose adjoint it is for, because it does no harm where nobody
asks for that adjoint.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cached_property

from warp_debug_gradients.patterns.source import SourceFile

Paths = frozenset[str]
Reads = frozenset[tuple[str, int]]  # a path and which load of it
NONE: Paths = frozenset()
UNREAD: Reads = frozenset()
LINEAR = {
    "float", "float16", "float32", "float64", "neg", "add", "sub", "transpose", "trace", "skew", "diag",
    "get_diag", "lerp_none", "tile", "untile", "tile_sum", "tile_extract", "tile_reshape", "tile_broadcast",
}  # fmt: skip
BUILDERS = ("vec", "mat", "quat", "transform", "spatial_vector", "spatial_matrix", "vector", "matrix")
PRODUCTS = {"dot", "cross", "mul", "outer", "cw_mul", "ddot", "quat_rotate", "transform_point", "transform_vector"}
PIECEWISE = {
    "int", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool", "round", "rint", "floor",
    "ceil", "trunc", "sign", "step", "frac", "argmin", "argmax", "isnan", "isfinite", "isinf", "nonzero", "lower_bound",
}  # fmt: skip
PLAIN = {
    "tid",
    "len",
    "static",
    "print",
    "printf",
    "rand_init",
    "randf",
    "randi",
    "randn",
    "constant",
    "range",
    "zeros",
}
ATOMICS = {
    "atomic_add",
    "atomic_sub",
    "atomic_min",
    "atomic_max",
    "atomic_cas",
    "atomic_exch",
    "atomic_and",
    "atomic_or",
}
CHOICES = {"where", "select"}
MAX_DEPTH = 12


@dataclass(frozen=True)
class Value:
    """What an expression depends on: `deps` through derivatives, `vals` by value at all; `alias`: it *is* that array."""

    deps: Paths = NONE
    vals: Reads = UNREAD
    alias: str | None = None

    def __or__(self, other: Value) -> Value:
        same = self.alias if self.alias == other.alias else None
        return Value(self.deps | other.deps, self.vals | other.vals, same)


@dataclass(frozen=True)
class Access:
    """One load or store of an array. A coordinate is the source of an index, or None for the thread's own and others."""

    path: str
    node: ast.AST
    source: SourceFile
    coords: tuple[str | None, ...]
    text: str
    order: int
    how: str = "load"  # load, store, accumulate, update
    deps: Paths = NONE
    vals: Paths = NONE
    conditional: bool = False


@dataclass
class Kernel:
    """A kernel's arguments and what it does to the arrays among them."""

    name: str
    source: SourceFile
    node: ast.FunctionDef
    params: list[str]
    annotations: dict[str, ast.expr | None]
    loads: list[Access] = field(default_factory=list[Access])
    stores: list[Access] = field(default_factory=list[Access])
    needs: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    needed: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])  # the loads whose values are needed
    called: list[tuple[SourceFile, ast.FunctionDef]] = field(default_factory=list[tuple[SourceFile, ast.FunctionDef]])

    def flows(self, path: str) -> Paths:
        """The arrays that what is written to `path` depends on differentiably."""
        return NONE.union(*(s.deps for s in self.stores if s.path == path))

    @property
    def written(self) -> set[str]:
        """Paths that some thread may write."""
        return {s.path for s in self.stores}

    @property
    def loaded(self) -> set[str]:
        """Paths whose elements some thread may load."""
        return {a.path for a in self.loads}

    @cached_property
    def counters(self) -> set[str]:
        """The names that its `for` loops count with."""
        targets = [loop.target for loop in ast.walk(self.node) if isinstance(loop, ast.For)]
        return {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}


def is_array(annotation: ast.expr | None) -> bool:
    """`wp.array(dtype=float)`, `wp.array2d[float]`, "wp.array(...)": an array of some kind."""
    if annotation is None:
        return False
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return "array" in annotation.value
    target = annotation.func if isinstance(annotation, ast.Call) else annotation
    target = target.value if isinstance(target, ast.Subscript) else target
    name = target.attr if isinstance(target, ast.Attribute) else target.id if isinstance(target, ast.Name) else ""
    return "array" in name.lower()


def array_dtype(annotation: ast.expr | None) -> str:
    """The element type of an array annotation, as text ("" where it does not say)."""
    if isinstance(annotation, ast.Call):
        given = [k.value for k in annotation.keywords if k.arg == "dtype"] or annotation.args[:1]
        return ast.unparse(given[0]).rsplit(".", 1)[-1] if given else ""
    if isinstance(annotation, ast.Subscript):
        return ast.unparse(annotation.slice).rsplit(".", 1)[-1]
    return ""


def is_integer(dtype: str) -> bool:
    """Whether a type has no derivative."""
    return dtype.lstrip("wp.").startswith(("int", "uint", "bool"))


def paths(reads: Reads) -> Paths:
    """The arrays of some loads."""
    return frozenset(path for path, _ in reads)

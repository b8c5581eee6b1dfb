"""What a host expression may be, as far as gradients are concerned. Identity is object identity."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from warp_debug_gradients.patterns.source import SourceFile


@dataclass(eq=False)
class Array:
    """A Warp array. `base` is the array whose memory it shares; an unknown object is a `Symbol`."""

    name: str
    source: SourceFile
    node: ast.AST
    requires_grad: bool | None = None
    retain_grad: bool = False
    integer: bool = False
    base: Array | None = None
    maker: str = ""  # zeros, array, clone, view, ptr, ...
    visit: tuple[int, ...] = ()  # loop passes in which it was made
    made_from: tuple[Array, ...] = ()  # arrays whose values were in NumPy data that it was made of
    gradient_of: Array | None = None  # the array whose gradient it is a clone of

    @property
    def root(self) -> Array:
        """The array that owns the memory."""
        found, hops = self, 0
        while found.base is not None and hops < 50:
            found, hops = found.base, hops + 1
        return found

    @property
    def label(self) -> str:
        """The user's name for it, or where it was made."""
        return self.name or f"the array of line {self.line}"

    @property
    def line(self) -> int:
        """Where it was made."""
        return getattr(self.node, "lineno", 1)


@dataclass(eq=False)
class Symbol(Array):
    """An object that is not known: an argument of a function nobody calls, an attribute set elsewhere."""

    children: dict[object, Any] = field(default_factory=dict[object, Any])

    def child(self, key: object) -> Symbol:
        """The same object each time for the same attribute or constant index."""
        if key not in self.children:
            text = f"{self.name}[{key}]" if not isinstance(key, str) else f"{self.name}.{key}"
            self.children[key] = Symbol(text, self.source, self.node)
        return self.children[key]


@dataclass(eq=False)
class GradOf:
    """`array.grad`."""

    array: Array


@dataclass(eq=False)
class Host:
    """A value on the host. `arrays`, `grads`: what its numbers were read from; `view`: it still *is* that memory."""

    arrays: frozenset[Array] = frozenset()
    grads: frozenset[Array] = frozenset()
    view: Array | None = None
    of_grad: bool = False
    stamp: int = 0  # zeroings of the gradient seen when the view was taken
    text: str = ""
    reads: frozenset[int] = frozenset()  # the events that read the gradients in it


@dataclass(eq=False)
class Const:
    """A number, string or boolean that is known."""

    value: Any


@dataclass(eq=False)
class Sequence:
    """A list or tuple. `template` makes further elements on demand (a comprehension); `open`: it may be longer."""

    items: list[Any]
    template: Callable[[object], Any] | None = None
    open: bool = False
    made: dict[object, Any] = field(default_factory=dict[object, Any])
    length: int | None = None

    def get(self, index: int) -> Any:
        """The element, or None where it is not known."""
        if 0 <= index < len(self.items):
            return self.items[index]
        if index < 0 and self.template is None and -index <= len(self.items):
            return self.items[index]
        if self.template is not None:
            if index < 0 and self.length is not None:
                index += self.length
                if 0 <= index < len(self.items):
                    return self.items[index]
            if index not in self.made:
                self.made[index] = self.template(index)
            return self.made[index]
        return None


@dataclass(eq=False)
class Mapping:
    """A dict with known keys."""

    items: dict[object, Any]


@dataclass(eq=False)
class Class:
    """A class of the user's."""

    name: str
    source: SourceFile
    node: ast.ClassDef
    env: Env
    bases: list[Any] = field(default_factory=list[Any])
    members: dict[str, Any] = field(default_factory=dict[str, Any])
    struct: bool = False

    def lookup(self, name: str, depth: int = 0) -> Any:
        """A member, by the order of the bases."""
        if name in self.members:
            return self.members[name]
        for base in self.bases:
            if isinstance(base, Class) and depth < 10:
                found = base.lookup(name, depth + 1)
                if found is not None:
                    return found
        return None


@dataclass(eq=False)
class Instance:
    """An object of a user's class or `@wp.struct`."""

    cls: Class
    name: str = ""
    attrs: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(eq=False)
class Function:
    """A function of the user's, bound to an object where it is a method."""

    source: SourceFile
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    env: Env
    owner: Any = None


@dataclass(eq=False)
class KernelValue:
    """A `@wp.kernel`."""

    source: SourceFile
    node: ast.FunctionDef


@dataclass(eq=False)
class TapeValue:
    """A `wp.Tape`."""

    source: SourceFile
    node: ast.AST
    name: str = "tape"


@dataclass(eq=False)
class Optimizer:
    """An optimizer of Warp's (or PyTorch's), with the arrays it updates."""

    params: list[Array]


@dataclass(eq=False)
class Command:
    """What `wp.launch(record_cmd=True)` returns."""

    kernel: Any


@dataclass(eq=False)
class Warp:
    """A name of Warp's, such as `utils.array_sum`."""

    name: str


@dataclass(eq=False)
class Library:
    """A name of a module that was not scanned, such as `np.random.rand`."""

    name: str


@dataclass(eq=False)
class Module:
    """A scanned module."""

    source: SourceFile
    env: Env


@dataclass(eq=False)
class Env:
    """Names in scope."""

    names: dict[str, Any]
    parent: Env | None = None
    outer: set[str] = field(default_factory=set[str])  # declared global or nonlocal

    def get(self, name: str) -> Any:
        """The value of a name, or None."""
        scope, hops = self, 0
        while scope is not None and hops < 60:
            if name in scope.names:
                return scope.names[name]
            scope, hops = scope.parent, hops + 1
        return None

    def set(self, name: str, value: Any) -> None:
        """Binds a name here, or where it was declared to belong."""
        if name in self.outer and self.parent is not None:
            scope = self.parent
            while scope.parent is not None and name not in scope.names:
                scope = scope.parent
            scope.names[name] = value
        else:
            self.names[name] = value


def arrays_in(value: Any, depth: int = 0) -> list[Array]:
    """Every array inside a value."""
    if isinstance(value, Array):
        return [value]
    if depth > 4:
        return []
    inner: list[Any] = []
    if isinstance(value, Sequence):
        inner = [*value.items, *value.made.values()]
    elif isinstance(value, Mapping):
        inner = list(value.items.values())
    elif isinstance(value, Instance):
        inner = list(value.attrs.values())
    return [a for each in inner[:40] for a in arrays_in(each, depth + 1)]


class Sources(NamedTuple):
    """Where the numbers in host values come from."""

    arrays: frozenset[Array]
    grads: frozenset[Array]
    reads: frozenset[int]  # the events by which the gradients were read

    def listed(self) -> dict[str, Any]:
        """As fields of an event."""
        return {"arrays": list(self.arrays), "grads": list(self.grads), "reads": sorted(self.reads)}


def host_sources(values: list[Any]) -> Sources:
    """The arrays and gradients whose numbers are in host values."""
    arrays: set[Array] = set()
    grads: set[Array] = set()
    reads: set[int] = set()
    queue = list(values)
    for _ in range(200):
        if not queue:
            break
        value = queue.pop()
        if isinstance(value, Host):
            arrays |= value.arrays
            grads |= value.grads
            reads |= value.reads
        elif isinstance(value, GradOf):
            grads.add(value.array)
        elif isinstance(value, Sequence):
            queue += value.items[:20]
        elif isinstance(value, Mapping):
            queue += list(value.items.values())[:20]
    return Sources(frozenset(arrays), frozenset(grads), frozenset(reads))

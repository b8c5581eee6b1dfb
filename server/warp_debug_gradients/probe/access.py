"""What a kernel does to each of its arguments: read, written, accumulated.

Derived from the kernel's Python syntax tree, because Warp's own flags (`Var.is_read`) miss left operands,
tile accesses, aliases and struct members. `argument_access(kernel)` follows aliases (`q = s.q`), views
(`row = a[i]`), struct fields and calls of `@wp.func`; it ignores the order of statements and takes every
branch, so "read" means "some thread may read". Where the source does not say (a native snippet, a function
that cannot be resolved) an array counts as read and written, with `certain=False`.
"""

from __future__ import annotations

import ast
import operator
import weakref
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

MAX_ROUNDS = 12  # each round extends alias chains by one link at least; real kernels need two or three
MAX_CALL_DEPTH = 40
MAX_STRUCT_DEPTH = 8

_WRITERS = ("tile_store", "array_store")
_ACCUMULATORS = ("atomic_add", "atomic_sub", "tile_atomic_add")
# Builtins that take an array without touching its elements.
_UNTOUCHING = {"len", "static", "type", "print", "array", "address", "zeros"}
_CHOOSING = {"where", "select"}  # hand one of their arguments on
_TID, _VALUE = "@tid", "@value"

Place = tuple[str, int]  # a variable's path, and how many of an array's dimensions are indexed already


@dataclass
class Access:
    """What one launch may do to an array.

    `read`: the result depends on what the array held before (accumulation counts). `loaded`: an element's
    value goes into other computations. `stored`: some element is plainly assigned. `accumulated`: some
    element is added to or subtracted from. `elementwise`: every element is touched at exactly the thread's
    own index, `a[i]` with `i = wp.tid()`.
    """

    read: bool = False
    written: bool = False
    accumulated: bool = False
    loaded: bool = False
    stored: bool = False
    elementwise: bool = True
    certain: bool = True

    @cached_property
    def usage(self) -> tuple[bool, bool, bool, bool]:
        """(read, written, only added to, threads load other elements than their own), when nothing more is noted."""
        only_added = self.accumulated and not self.loaded and not self.stored
        return self.read, self.written, only_added, self.loaded and not self.elementwise

    def note(self, what: str, elementwise: bool) -> None:
        self.read |= what in ("load", "accumulate", "update", "unknown")
        self.written |= what != "load"
        self.accumulated |= what == "accumulate"
        self.loaded |= what in ("load", "update", "unknown")
        self.stored |= what in ("store", "update", "unknown")
        self.elementwise &= elementwise
        self.certain &= what != "unknown"

    def __or__(self, other: Access) -> Access:
        either = {name: getattr(self, name) | getattr(other, name) for name in self.__dataclass_fields__}
        either["elementwise"] = self.elementwise & other.elementwise
        either["certain"] = self.certain & other.certain
        return Access(**either)


UNKNOWN = Access(True, True, False, True, True, False, False)

_cache: weakref.WeakKeyDictionary[Any, dict[str, Access]] = weakref.WeakKeyDictionary()


def argument_access(kernel: Any) -> dict[str, Access]:
    """label -> Access for each argument; for struct arguments also 's.q', 's.inner.v' for each field."""
    known = _cache.get(kernel)
    if known is None:
        known = _cache[kernel] = _derive(kernel)
    return known


def _derive(kernel: Any) -> dict[str, Access]:
    adj = kernel.adj
    types = {arg.label: None if arg.type is Any else arg.type for arg in adj.args}
    try:
        noted = _Reader(types).run(adj)
    except Exception:  # whatever the syntax tree holds that is not foreseen here: say nothing about it
        return {path: UNKNOWN for label in types for path in _paths(label, types[label])}
    return _collected(types, noted)


def _collected(types: dict[str, Any], noted: dict[str, Access]) -> dict[str, Access]:
    result: dict[str, Access] = {}
    for label, kind in types.items():
        fields = _paths(label, kind)
        for path in fields:
            result[path] = noted.get(path, Access(elementwise=False))
        for path in noted:  # arrays inside the elements of an array of structs
            if path.startswith(label + ".") and path not in result:
                result[path] = noted[path]
        touched = [result[path] for path in fields[1:] if result[path].read or result[path].written]
        if touched:
            result[label] = reduce(operator.or_, touched)
    return result


# -- types, without importing Warp -----------------------------------------------------------------------


def _fields(kind: Any) -> dict[str, Any] | None:
    """name -> type of a wp.struct's fields, or None."""
    variables = None if is_array_type(kind) else getattr(kind, "vars", None)
    return {name: var.type for name, var in variables.items()} if isinstance(variables, dict) else None


def is_array_type(kind: Any) -> bool:
    name = kind.__name__ if isinstance(kind, type) else type(kind).__name__
    return "array" in name.lower() and isinstance(getattr(kind, "ndim", None), int)


def _is_reference(kind: Any) -> bool:
    return type(kind).__name__ == "Reference"


def _paths(path: str, kind: Any, depth: int = 0) -> list[str]:
    found = [path]
    for name, field in (_fields(kind) or {}).items():
        if depth < MAX_STRUCT_DEPTH:
            found += _paths(f"{path}.{name}", field, depth + 1)
    return found


# -- following the source ----------------------------------------------------------------------------------


class _Reader:
    """Walks a kernel and the functions it calls until nothing new turns up.

    Every variable is a path: kernel arguments under their own name, locals as `%frame.name`. `aliases` says
    which places a path may stand for. A place is `(path, dims)`: `dims` of the array's dimensions are
    indexed already, so that `row = a[i]` of a 2-D array is the place ('a', 1).
    """

    def __init__(self, types: dict[str, Any]) -> None:
        self.types = types
        self.aliases: dict[str, set[Place]] = {}
        self.noted: dict[str, Access] = {}
        self.frames: dict[Any, str] = {}
        self.returned: dict[str, set[Place]] = {}
        self.visited: set[Any] = set()
        self.changed = False

    def run(self, adj: Any) -> dict[str, Access]:
        for _ in range(MAX_ROUNDS):
            self.changed = False
            self.visited = set()
            _Frame(self, adj, "", 0, list(self.types)).run()
            if not self.changed:
                break
        return self.noted

    def type_of(self, path: str) -> Any:
        """The Warp type of an argument's path, or None for locals."""
        label, *fields = path.split(".")
        kind: Any = self.types.get(label)
        for name in fields:
            if is_array_type(kind):
                kind = kind.dtype
            kind = (_fields(kind) or {}).get(name)
        return kind

    def alias(self, path: str, places: AbstractSet[Place]) -> None:
        known = self.aliases.setdefault(path, set())
        if not places <= known:
            known |= places
            self.changed = True

    def resolve(self, path: str) -> set[Place]:
        """All places that a path stands for: itself, and whatever it may be an alias of."""
        found: set[Place] = set()
        queue: list[Place] = [(path, 0)]
        while queue:
            place = queue.pop()
            if place in found:
                continue
            found.add(place)
            if place[1] == 0:
                queue += self.aliases.get(place[0], ())
        # A local that is known to stand for something else adds nothing; left in, recursion would never settle.
        return {(each, dims) for each, dims in found if each[0] != "%" or each not in self.aliases}

    def note(self, places: AbstractSet[Place], what: str, elementwise: bool = False) -> None:
        for path, _ in places:
            if path[0] in "%@":
                continue
            access = self.noted.setdefault(path, Access())
            before = vars(access).copy()
            access.note(what, elementwise)
            self.changed |= before != vars(access)

    def note_all(self, places: AbstractSet[Place], what: str) -> None:
        """Every array of a place, those in its struct fields too."""
        for path, dims in places:
            for inner in _paths(path, self.type_of(path)):
                for each in self.resolve(inner):
                    kind = self.type_of(each[0])
                    if kind is None or is_array_type(kind):
                        self.note({(each[0], dims)}, what)

    def call(self, adj: Any, bound: dict[str, frozenset[Place]], depth: int) -> set[Place]:
        """Follows a call of a user's function; returns the places that it may return."""
        key = (id(adj), tuple(sorted((name, tuple(sorted(places))) for name, places in bound.items())))
        prefix = self.frames.setdefault(key, f"%{len(self.frames)}.")
        if depth > MAX_CALL_DEPTH:
            for places in bound.values():
                self.note_all(places, "unknown")
        elif key not in self.visited:
            self.visited.add(key)
            for name, places in bound.items():
                self.alias(prefix + name, places)
            _Frame(self, adj, prefix, depth, list(bound)).run()
        return self.returned.get(prefix, set())


class _Frame:
    """One function body, with its arguments bound."""

    def __init__(self, reader: _Reader, adj: Any, prefix: str, depth: int, parameters: list[str]) -> None:
        self.reader, self.adj, self.prefix, self.depth = reader, adj, prefix, depth
        self.function = adj.tree.body[0]
        stored = {n.id for n in ast.walk(self.function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.locals = stored | {arg.arg for arg in self.function.args.args} | set(parameters)
        self.references = {arg.label for arg in adj.args if _is_reference(arg.type)}

    def run(self) -> None:
        for statement in self.function.body:
            self.statement(statement)

    # -- statements ---------------------------------------------------------------------------------------

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self.assign(target, node.value)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.assign(node.target, node.value)
        elif isinstance(node, ast.AugAssign):
            self.augment(node)
        elif isinstance(node, ast.For):
            self.value(node.iter)
            self.bind(node.target, set())
            self.block(node)
        elif isinstance(node, ast.Return):
            returned = self.value(node.value) if node.value is not None else set()
            known = self.reader.returned.setdefault(self.prefix, set())
            self.reader.changed |= not returned <= known
            known |= returned
        else:
            self.block(node)

    def block(self, node: ast.AST) -> None:
        """Children of a statement: expressions are evaluated, inner statements followed."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                self.statement(child)
            elif isinstance(child, ast.expr) and not (isinstance(node, ast.For) and child in (node.target, node.iter)):
                self.value(child)
            elif not isinstance(child, (ast.expr, ast.expr_context, ast.operator)):
                self.block(child)

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        several = isinstance(target, (ast.Tuple, ast.List))
        if several and isinstance(value, (ast.Tuple, ast.List)) and len(target.elts) == len(value.elts):
            for each, source in zip(target.elts, value.elts, strict=True):
                self.assign(each, source)
            return
        places = self.value(value)
        if several:
            for position, each in enumerate(target.elts):
                own = {(f"{_TID}{position}", 0)} if (_TID, 0) in places else places
                self.bind(each, own)
        else:
            self.bind(target, {(_TID + "0", 0)} if (_TID, 0) in places else places)

    def bind(self, target: ast.expr, places: set[Place]) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            for each in target.elts:
                self.bind(each, places)
        elif isinstance(target, ast.Name):
            if target.id in self.references:
                self.reader.note(self.reader.resolve(self.path(target.id)), "store")
            else:
                self.reader.alias(self.path(target.id), places or {(_VALUE, 0)})
        elif isinstance(target, ast.Attribute):
            self.store(target, "store")
            for path, _ in {
                owner for owner in self.place(target.value) if not self.is_element(owner)
            }:  # a struct's field: the copy in this thread points elsewhere now
                self.reader.alias(f"{path}.{target.attr}", places or {(_VALUE, 0)})
        elif isinstance(target, ast.Subscript):
            self.store(target, "store")

    def augment(self, node: ast.AugAssign) -> None:
        self.value(node.value)
        what = "accumulate" if isinstance(node.op, (ast.Add, ast.Sub)) else "update"
        if isinstance(node.target, ast.Name):
            if node.target.id in self.references:
                self.reader.note(self.reader.resolve(self.path(node.target.id)), what)
            else:
                self.reader.alias(self.path(node.target.id), {(_VALUE, 0)})
            return
        self.store(node.target, what)

    # -- expressions --------------------------------------------------------------------------------------

    def path(self, name: str) -> str:
        return self.prefix + name if self.prefix or name in self.reader.types else f"%.{name}"

    def place(self, node: ast.expr) -> set[Place]:
        """The places an expression stands for, without loading anything from them."""
        if isinstance(node, ast.Name):
            return self.reader.resolve(self.path(node.id)) if node.id in self.locals else set()
        if isinstance(node, ast.Attribute):
            return self.attribute(self.place(node.value), node.attr)
        if isinstance(node, ast.Subscript):
            return self.indexed(self.place(node.value), node)
        return self.value(node)

    def attribute(self, owners: set[Place], name: str) -> set[Place]:
        found: set[Place] = set()
        for path, dims in owners:
            kind = self.reader.type_of(path)
            if path[0] == "@":
                continue
            if is_array_type(kind):
                if dims < kind.ndim:
                    continue  # a.shape, a.ptr
                inner = (_fields(kind.dtype) or {}).get(name)
                if not (is_array_type(inner) or _fields(inner) is not None):
                    found.add((path, dims))  # a component of the element: still that element
                    continue
            elif kind is not None and _fields(kind) is None:
                continue  # v.x of a vector argument
            found |= self.reader.resolve(f"{path}.{name}")
        return found

    def indexed(self, owners: set[Place], node: ast.Subscript) -> set[Place]:
        given = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        consumed = sum(not isinstance(each, ast.Slice) for each in given)
        found: set[Place] = set()
        for path, dims in owners:
            kind = self.reader.type_of(path)
            if path[0] != "@" and (kind is None or is_array_type(kind)):
                deeper = dims + consumed
                found.add((path, min(deeper, kind.ndim) if kind is not None else deeper))
        return found

    def is_element(self, place: Place) -> bool:
        kind = self.reader.type_of(place[0])
        return is_array_type(kind) and place[1] >= kind.ndim

    def is_view(self, place: Place) -> bool:
        kind = self.reader.type_of(place[0])
        return is_array_type(kind) and place[1] < kind.ndim

    def store(self, target: ast.Attribute | ast.Subscript, what: str) -> None:
        """Notes a store to an element, or to a component of one, and what is loaded on the way there."""
        self.indices(target)
        touched = {p for p in self.place(target) if self.is_element(p) or self.reader.type_of(p[0]) is None}
        self.reader.note(touched, what, self.own_index(target))
        paths = {path for path, _ in touched}
        passed = {p for p in self.along(target.value) if self.is_element(p) and p[0] not in paths}
        self.reader.note(passed, "load", self.own_index(target))

    def indices(self, node: ast.expr) -> None:
        """Evaluates, once, what an access expression has in its brackets and what it starts from."""
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            if isinstance(node, ast.Subscript):
                self.value(node.slice)
            node = node.value
        if not isinstance(node, (ast.Name, ast.Call)):
            self.value(node)

    def value(self, node: ast.expr) -> set[Place]:
        """Evaluates an expression: notes what it loads; returns the arrays or structs it may be."""
        if isinstance(node, ast.Name):
            return self.place(node)
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            return self.load(node)
        if isinstance(node, ast.Call):
            return self.call(node)
        if isinstance(node, (ast.IfExp, ast.Tuple, ast.List)):
            parts = [node.body, node.orelse] if isinstance(node, ast.IfExp) else node.elts
            if isinstance(node, ast.IfExp):
                self.value(node.test)
            return set().union(*map(self.value, parts))
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child)
        return set()

    def load(self, node: ast.Attribute | ast.Subscript) -> set[Place]:
        self.indices(node)
        places = self.place(node)
        elements = {place for place in self.along(node) if self.is_element(place)}
        if isinstance(node, ast.Subscript):
            elements |= {place for place in places if self.reader.type_of(place[0]) is None}
        self.reader.note(elements, "load", self.own_index(node))
        return {p for p in places if self.is_view(p) or not is_array_type(self.reader.type_of(p[0]))}

    def along(self, node: ast.expr) -> set[Place]:
        """The places of an expression and of everything it goes through: `arr[i].q` loads from `arr` too."""
        found: set[Place] = set()
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            found |= self.place(node)
            node = node.value
        return found

    def own_index(self, node: ast.expr) -> bool:
        """Is the array indexed by the thread's own index, `a[i]` or `a[i, j]`, and by nothing else?"""
        while isinstance(node, ast.Attribute) or (isinstance(node, ast.Subscript) and self.is_component(node)):
            node = node.value
        if not isinstance(node, ast.Subscript):
            return False
        given: list[ast.expr] = []
        while isinstance(node, ast.Subscript):
            given[:0] = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            node = node.value
        return self.are_own(given)

    def is_component(self, node: ast.Subscript) -> bool:
        known = [owner for owner in self.place(node.value) if self.reader.type_of(owner[0]) is not None]
        return bool(known) and all(map(self.is_element, known))

    def are_own(self, given: list[ast.expr]) -> bool:
        own = [{(f"{_TID}{n}", 0)} for n in range(len(given))]
        return [{p for p in self.place(each) if p[0][0] == "@"} for each in given] == own

    # -- calls --------------------------------------------------------------------------------------------

    def call(self, node: ast.Call) -> set[Place]:
        callee, name = self.callee(node.func)
        if name == "static":
            return set()
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        if name == "tid":
            return {(_TID, 0)}
        adjoints = _user_functions(callee)
        if adjoints is not None:
            return self.user_call(node, adjoints)
        if _fields(callee) is not None:
            return self.construct(node, callee)
        written = name.startswith((*_WRITERS, *_ACCUMULATORS, "atomic_"))
        first = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg in ("arr", "a")), None)
        if written and first is not None:
            self.write_call(name, node, first)
            arguments = [each for each in arguments if each is not first]
        places = [self.value(each) for each in arguments]
        if name in _CHOOSING:
            return set().union(*places)
        if name not in _UNTOUCHING:
            for each in places:
                self.reader.note_all(each, "load" if name else "unknown")
            if name == "address_of":  # whoever gets the pointer may do anything
                for each in arguments:
                    self.reader.note(self.place(each), "unknown")
        return set()

    def write_call(self, name: str, node: ast.Call, first: ast.expr) -> None:
        what = "accumulate" if name.startswith(_ACCUMULATORS) else "store" if name.startswith(_WRITERS) else "update"
        own = name.startswith("atomic_") and self.are_own(node.args[1:-1])
        self.indices(first)
        places = self.place(first)
        self.reader.note({p for p in places if is_array_type(self.reader.type_of(p[0]))}, what, own)

    def user_call(self, node: ast.Call, adjoints: list[Any]) -> set[Place]:
        values = {id(each): self.value(each) for each in node.args}
        keyed = {k.arg: self.value(k.value) for k in node.keywords}
        found: set[Place] = set()
        for adj in adjoints:
            if adj is None:  # native code
                for places in [*values.values(), *keyed.values()]:
                    self.reader.note_all(places, "unknown")
                continue
            signature = adj.tree.body[0].args
            names = [arg.arg for arg in signature.args]
            given = len(node.args) + len(node.keywords)
            if not len(names) - len(signature.defaults) <= given <= len(names):
                continue  # another overload
            references = {arg.label for arg in adj.args if _is_reference(arg.type)}
            bound = dict.fromkeys(names, frozenset({(_VALUE, 0)}))
            for name, each in zip(names, node.args, strict=False):
                places = self.place(each) if name in references else values[id(each)]
                bound[name] = frozenset(places or {(_VALUE, 0)})
            bound.update({name: frozenset(places or {(_VALUE, 0)}) for name, places in keyed.items()})
            found |= self.reader.call(adj, bound, self.depth + 1)
        return found

    def construct(self, node: ast.Call, struct: Any) -> set[Place]:
        """`S()` or `S(q=a)`: a struct of this thread, whose fields may be aliases."""
        path = f"%new{node.lineno}_{node.col_offset}{self.prefix}"
        given = dict(zip(struct.vars, node.args, strict=False))
        given.update({keyword.arg: keyword.value for keyword in node.keywords})
        for name, value in given.items():
            self.reader.alias(f"{path}.{name}", self.value(value) or {(_VALUE, 0)})
        return {(path, 0)}

    def callee(self, node: ast.expr) -> tuple[Any, str]:
        """(object, name) of what a call calls; the object is None where it cannot be found."""
        if isinstance(node, ast.Name):
            if node.id in self.locals:
                return None, ""
            found = _lookup(self.adj.func, node.id)
            return found, getattr(found, "key", None) or node.id
        if isinstance(node, ast.Attribute):
            owner, _ = self.callee(node.value)
            found = getattr(owner, node.attr, None)
            # Not every builtin is an attribute of the `warp` module: those go by their name.
            return found, "" if owner is None else getattr(found, "key", None) or node.attr
        return None, ""  # wp.grad(f)(x), a call of a call


def _lookup(function: Any, name: str) -> Any:
    """A name in the scope of a Python function: its closure, its globals, the builtins."""
    free = function.__code__.co_freevars
    if name in free:
        try:
            return function.__closure__[free.index(name)].cell_contents
        except ValueError:  # not yet assigned
            return None
    scope = function.__globals__
    builtins = scope.get("__builtins__", {})
    inside = builtins if isinstance(builtins, dict) else vars(builtins)
    return scope.get(name, inside.get(name))


def _user_functions(callee: Any) -> list[Any] | None:
    """The adjoints of a `@wp.func` and its overloads (None for native code); None if it is no user function."""
    overloads = getattr(callee, "user_overloads", None)
    if overloads is None or callee.is_builtin():
        return None
    every = [callee, *overloads.values(), *(getattr(callee, "user_templates", None) or {}).values()]
    found: dict[int, Any] = {}
    for each in every:
        adj = None if getattr(each, "native_snippet", None) else getattr(each, "adj", None)
        found[id(adj)] = adj
    return list(found.values())

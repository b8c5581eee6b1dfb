"""Follows a kernel's source, with the functions that it calls: every read, write and need of its arrays."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from warp_debug_gradients.patterns.kernels import (
    ATOMICS,
    BUILDERS,
    CHOICES,
    LINEAR,
    MAX_DEPTH,
    NONE,
    PIECEWISE,
    PLAIN,
    PRODUCTS,
    UNREAD,
    Access,
    Kernel,
    Paths,
    Reads,
    Value,
    array_dtype,
    is_array,
    is_integer,
    paths,
)
from warp_debug_gradients.patterns.program import Program
from warp_debug_gradients.patterns.source import SourceFile


def read_kernel(program: Program, source: SourceFile, node: ast.FunctionDef) -> Kernel:
    """Follows a kernel's source, with the functions that it calls."""
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    kernel = Kernel(node.name, source, node, [a.arg for a in every], {a.arg: a.annotation for a in every})
    reader = _Reader(program, kernel)
    env: dict[str, Value] = {a.arg: Value(alias=a.arg) for a in every}
    with suppress(RecursionError):  # an expression nested beyond all measure: what was read until then stands
        reader.body(_Frame(source, node, env, {a.arg for a in every if _is_scalar(a.annotation)}), node.body)
    return kernel


def _is_scalar(annotation: ast.expr | None) -> bool:
    text = ast.unparse(annotation).rsplit(".", 1)[-1] if annotation is not None else ""
    return text.startswith(("int", "uint", "float", "bool"))


@dataclass
class _Frame:
    source: SourceFile
    node: ast.FunctionDef
    env: dict[str, Value]
    steps: set[str]  # scalar arguments, loop variables and what is computed from them: they slice arrays
    control: list[Value] = field(default_factory=list[Value])
    returned: Value = Value()


class _Reader:
    def __init__(self, program: Program, kernel: Kernel) -> None:
        self.program, self.kernel = program, kernel
        self.order = 0
        self.depth = 0
        self.budget = 4000

    # -- statements -----------------------------------------------------------------------------------

    def body(self, frame: _Frame, statements: Iterable[ast.stmt]) -> None:
        for statement in statements:
            self.budget -= 1
            if self.budget > 0:
                self.statement(frame, statement)

    def statement(self, frame: _Frame, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            value = self.value(frame, node.value)
            for target in node.targets:
                self.assign(frame, target, value, node.value)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.assign(frame, node.target, self.value(frame, node.value), node.value)
        elif isinstance(node, ast.AugAssign):
            self.augment(frame, node)
        elif isinstance(node, ast.Return):
            if node.value is not None:
                value = self.value(frame, node.value)
                self.need(self.controls(frame), value.deps)
                frame.returned = Value(frame.returned.deps | value.deps, frame.returned.vals | value.vals, value.alias)
        elif isinstance(node, ast.If):
            self.branches(frame, self.value(frame, node.test), [node.body, node.orelse])
        elif isinstance(node, (ast.For, ast.While)):
            self.loop(frame, node)
        elif isinstance(node, ast.Expr):
            self.value(frame, node.value)
        else:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.stmt):
                    self.statement(frame, child)

    def branches(self, frame: _Frame, test: Value, bodies: list[list[ast.stmt]]) -> None:
        before = dict(frame.env)
        frame.control.append(test)
        ends: list[dict[str, Value]] = []
        for body in bodies:
            frame.env = dict(before)
            self.body(frame, body)
            ends.append(frame.env)
        frame.control.pop()
        merged: dict[str, Value] = {}
        for name in {n for end in ends for n in end}:
            given = [end[name] for end in ends if name in end]
            value = given[0]
            for each in given[1:]:
                value = value | each
            if any(each is not given[0] for each in given):  # which value it is depends on the test
                self.need(test.vals, value.deps)
                value = Value(value.deps, value.vals | test.vals, value.alias)
            merged[name] = value
        frame.env = merged

    def loop(self, frame: _Frame, node: ast.For | ast.While) -> None:
        if isinstance(node, ast.For):
            self.value(frame, node.iter)
            for name in ast.walk(node.target):
                if isinstance(name, ast.Name):
                    frame.env[name.id] = Value()
                    frame.steps.add(name.id)
            test = Value()
        else:
            test = self.value(frame, node.test)
        for _ in range(2):  # what is carried from pass to pass settles after one more
            self.branches(frame, test, [node.body, []])
        self.body(frame, node.orelse)

    def assign(self, frame: _Frame, target: ast.expr, value: Value, node: ast.expr) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            for each in target.elts:
                self.assign(frame, each, Value(value.deps, value.vals), node)
        elif isinstance(target, ast.Name):
            frame.env[target.id] = value
            names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            if names & frame.steps and not value.vals:
                frame.steps.add(target.id)
        elif isinstance(target, (ast.Subscript, ast.Attribute)):
            path, access = self.array_access(frame, target)
            if path is None or access is None:
                key = _root(target)
                if key is not None:
                    frame.env[key] = frame.env.get(key, Value()) | Value(value.deps, value.vals)
                    if isinstance(target, ast.Attribute):
                        frame.env[ast.unparse(target)] = value
            else:
                self.store(frame, path, access, target, value, "store")

    def augment(self, frame: _Frame, node: ast.AugAssign) -> None:
        value = self.value(frame, node.value)
        linear = isinstance(node.op, (ast.Add, ast.Sub))
        path, access = self.array_access(frame, node.target)
        if path is None or access is None:
            key = _root(node.target)
            if key is not None:
                known = frame.env.get(key, Value())
                if not linear:
                    self.product(known, value, isinstance(node.op, ast.Div))
                frame.env[key] = Value(known.deps | value.deps, known.vals | value.vals)
            return
        if linear:
            self.store(frame, path, access, node.target, value, "accumulate")
        else:
            own = Value(frozenset({path}), frozenset({(path, 0)}))
            self.product(own, value, isinstance(node.op, ast.Div))
            self.store(frame, path, access, node.target, own | value, "update")

    def store(self, frame: _Frame, path: str, access: ast.Subscript, node: ast.AST, value: Value, how: str) -> None:
        index = self.value(frame, access.slice)
        self.need(index.vals | self.controls(frame), value.deps)
        vals = value.vals | index.vals | self.controls(frame)
        self.note(frame, self.kernel.stores, path, access, node, how, value.deps, paths(vals))

    # -- expressions ----------------------------------------------------------------------------------

    def value(self, frame: _Frame, node: ast.AST | None) -> Value:
        self.budget -= 1
        if node is None or self.budget < 0:
            return Value()
        if isinstance(node, ast.Name):
            return frame.env.get(node.id, Value())
        if isinstance(node, (ast.Subscript, ast.Attribute)):
            return self.load(frame, node)
        if isinstance(node, ast.BinOp):
            left, right = self.value(frame, node.left), self.value(frame, node.right)
            if isinstance(node.op, (ast.Mult, ast.MatMult, ast.Div)):
                self.product(left, right, isinstance(node.op, ast.Div))
            elif isinstance(node.op, (ast.Pow, ast.Mod)):
                self.need(left.vals | right.vals, left.deps | right.deps)
            elif isinstance(node.op, ast.FloorDiv):
                return Value(NONE, left.vals | right.vals)
            return Value(left.deps | right.deps, left.vals | right.vals)
        if isinstance(node, ast.UnaryOp):
            inner = self.value(frame, node.operand)
            return Value(NONE, inner.vals) if isinstance(node.op, ast.Not) else Value(inner.deps, inner.vals)
        if isinstance(node, ast.Call):
            return self.call(frame, node)
        if isinstance(node, (ast.Compare, ast.BoolOp)):
            parts = [self.value(frame, c) for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)]
            return Value(NONE, UNREAD.union(*(p.vals for p in parts)))
        if isinstance(node, ast.IfExp):
            test = self.value(frame, node.test)
            parts = self.value(frame, node.body) | self.value(frame, node.orelse)
            self.need(test.vals, parts.deps)
            return Value(parts.deps, parts.vals | test.vals)
        if isinstance(node, (ast.Tuple, ast.List, ast.Slice, ast.Starred)):
            parts = [self.value(frame, c) for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)]
            return Value(NONE.union(*(p.deps for p in parts)), UNREAD.union(*(p.vals for p in parts)))
        return Value()

    def load(self, frame: _Frame, node: ast.Subscript | ast.Attribute) -> Value:
        path, access = self.array_access(frame, node)
        if path is not None and access is not None:
            index = self.value(frame, access.slice)
            order = self.note(frame, self.kernel.loads, path, access, node, "load", NONE, NONE)
            integer = is_integer(array_dtype(self.kernel.annotations.get(path)))
            deps = NONE if integer else frozenset({path})
            self.need(index.vals, deps)
            return Value(deps, frozenset({(path, order)}) | index.vals)
        if isinstance(node, ast.Attribute):
            if path is not None:  # a struct's array or field, not yet indexed
                return Value(alias=path)
            text = ast.unparse(node)
            if text in frame.env:
                return frame.env[text]
        inner = self.value(frame, node.value)
        if isinstance(node, ast.Subscript):
            index = self.value(frame, node.slice)
            self.need(index.vals, inner.deps)
            return Value(inner.deps, inner.vals | index.vals)
        return Value(inner.deps, inner.vals)

    def array_access(self, frame: _Frame, node: ast.AST) -> tuple[str | None, ast.Subscript | None]:
        """The array an access expression reaches, and the subscript that does: `s.q[i].x` -> ("s.q", `s.q[i]`)."""
        chain: list[ast.Subscript | ast.Attribute] = []
        inner: ast.AST = node
        while isinstance(inner, (ast.Subscript, ast.Attribute)):
            chain.append(inner)
            inner = inner.value
        if not isinstance(inner, ast.Name) or inner.id not in frame.env:
            return None, None
        path = frame.env[inner.id].alias
        if path is None:
            return None, None
        for step in reversed(chain):
            if isinstance(step, ast.Attribute):
                if step.attr in ("shape", "size", "ndim", "ptr", "dtype", "strides"):
                    return None, None
                if is_array(self.kernel.annotations.get(path)):
                    return None, None
                path = f"{path}.{step.attr}"
            else:
                annotation = self.kernel.annotations.get(path)
                if path in self.kernel.annotations and not is_array(annotation) and annotation is not None:
                    return None, None  # a component of a vector argument
                return path, step
        return path, None

    def call(self, frame: _Frame, node: ast.Call) -> Value:
        name = frame.source.warp_name(node.func)
        if (
            name is None
            and isinstance(node.func, ast.Name)
            and node.func.id in ("float", "int", "len", "range", "bool")
        ):
            name = node.func.id
        found = self.program.definition(frame.source, node.func) if name is None else None
        if found and isinstance(found[1], ast.FunctionDef):
            return self.user_call(frame, node, found[0], found[1])
        short = (name or "").rsplit(".", 1)[-1]
        arguments = [*node.args, *(k.value for k in node.keywords)]
        if (short in ATOMICS or short in ("tile_store", "tile_atomic_add")) and node.args:
            return self.write_call(frame, node, short)
        parts = [self.argument(frame, each) for each in arguments]
        deps = NONE.union(*(p.deps for p in parts))
        vals = UNREAD.union(*(p.vals for p in parts))
        if short in PLAIN:
            return Value()
        if short in PIECEWISE:
            return Value(NONE, vals)
        if short in PRODUCTS and len(parts) >= 2:
            self.product(parts[0], parts[1], False)
        elif short in CHOICES and parts:
            deps = NONE.union(*(p.deps for p in parts[1:]))
            self.need(parts[0].vals, deps)
        elif short not in LINEAR and not short.startswith(BUILDERS):
            self.need(vals, deps)
        return Value(deps, vals)

    def argument(self, frame: _Frame, node: ast.AST) -> Value:
        """An argument of a builtin: a whole array that is handed over counts as loaded."""
        value = self.value(frame, node)
        if value.alias is not None and is_array(self.kernel.annotations.get(value.alias)):
            order = self.note(frame, self.kernel.loads, value.alias, None, node, "load", NONE, NONE)
            return Value(frozenset({value.alias}), frozenset({(value.alias, order)}))
        return Value(value.deps, value.vals)

    def write_call(self, frame: _Frame, node: ast.Call, name: str) -> Value:
        first = node.args[0]
        target = self.value(frame, first)
        rest = [self.value(frame, a) for a in [*node.args[1:], *(k.value for k in node.keywords)]]
        value = rest[-1] if rest else Value()
        index_vals = UNREAD.union(*(r.vals for r in rest[:-1]))
        path = target.alias
        if path is not None:
            how = "store" if name == "tile_store" else "accumulate" if name.endswith(("_add", "_sub")) else "update"
            self.need(index_vals | self.controls(frame), value.deps)
            vals = value.vals | index_vals | self.controls(frame)
            coords = tuple(self.coordinate(frame, a) for a in node.args[1:-1])
            self.note_access(self.kernel.stores, path, node, frame, coords, how, value.deps, paths(vals))
        return Value(NONE, frozenset({(path, 0)}) if path else UNREAD)

    def user_call(self, frame: _Frame, node: ast.Call, source: SourceFile, function: ast.FunctionDef) -> Value:
        compiled = source.compiled.get(function)
        values = [self.value(frame, a) for a in node.args]
        keyed = {k.arg: self.value(frame, k.value) for k in node.keywords if k.arg}
        if (source, function) not in self.kernel.called:
            self.kernel.called.append((source, function))
        names = [a.arg for a in function.args.args]
        native = compiled is not None and compiled.kind == "func_native"
        if native or self.depth >= MAX_DEPTH:
            deps = NONE.union(*(v.deps for v in [*values, *keyed.values()]))
            vals = UNREAD.union(*(v.vals for v in [*values, *keyed.values()]))
            self.need(vals, deps)
            return Value(deps, vals)
        env = {**dict(zip(names, values)), **keyed}
        steps = {n for n, a in zip(names, node.args) if isinstance(a, ast.Name) and a.id in frame.steps}
        inner = _Frame(source, function, env, steps, list(frame.control))
        self.depth += 1
        self.body(inner, function.body)
        self.depth -= 1
        return inner.returned

    # -- the book -------------------------------------------------------------------------------------

    def product(self, left: Value, right: Value, division: bool) -> None:
        self.need(right.vals, left.deps)
        self.need(left.vals, right.deps)
        if division:
            self.need(right.vals, right.deps)

    def need(self, vals: Reads, deps: Paths) -> None:
        """The adjoints of `deps` read the values of `vals` again."""
        if deps:
            for path, load in vals:
                self.kernel.needs.setdefault(path, set()).update(deps)
                self.kernel.needed.add((path, load))

    def controls(self, frame: _Frame) -> Reads:
        return UNREAD.union(*(c.vals for c in frame.control))

    def note(
        self,
        frame: _Frame,
        where: list[Access],
        path: str,
        access: ast.Subscript | None,
        node: ast.AST,
        how: str,
        deps: Paths,
        vals: Paths,
    ) -> int:
        given: list[ast.expr] = []
        inner: ast.expr | None = access
        while isinstance(inner, ast.Subscript):
            given[:0] = inner.slice.elts if isinstance(inner.slice, ast.Tuple) else [inner.slice]
            inner = inner.value
        return self.note_access(
            where, path, node, frame, tuple(self.coordinate(frame, g) for g in given), how, deps, vals
        )

    def note_access(
        self,
        where: list[Access],
        path: str,
        node: ast.AST,
        frame: _Frame,
        coords: tuple[str | None, ...],
        how: str,
        deps: Paths,
        vals: Paths,
    ) -> int:
        for position, known in enumerate(where):  # the second pass of a loop may know more
            if known.node is node and known.path == path and known.how == how:
                where[position] = replace(known, deps=known.deps | deps, vals=known.vals | vals)
                return known.order
        self.order += 1
        text = ast.unparse(node)
        where.append(Access(path, node, frame.source, coords, text, self.order, how, deps, vals, bool(frame.control)))
        return self.order

    def coordinate(self, frame: _Frame, node: ast.AST) -> str | None:
        """An index that scalar arguments or loop variables decide, or a constant: as text. Others: None."""
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        if names & frame.steps or (isinstance(node, ast.Constant) and isinstance(node.value, int)):
            return ast.unparse(node)
        number = frame.source.number(node)
        return None if number is None else str(number)


def _root(node: ast.AST) -> str | None:
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None

"""What an expression of the host code is, as an abstract value; its effects happen on the way."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from warp_debug_gradients.patterns import effects
from warp_debug_gradients.patterns.iteration import elements, passes
from warp_debug_gradients.patterns.operators import combine, compared, dict_key, extend, mix, slice_of, truth_of
from warp_debug_gradients.patterns.values import (
    Array,
    Const,
    Env,
    Function,
    GradOf,
    Host,
    Library,
    Mapping,
    Sequence,
    Symbol,
    Warp,
)

if TYPE_CHECKING:
    from warp_debug_gradients.patterns.rehearsal import Rehearsal


def evaluate(rehearsal: Rehearsal, node: ast.AST | None, env: Env) -> Any:
    """What an expression is; its effects happen on the way."""
    rehearsal.spend()
    if node is None:
        return Const(None)
    if isinstance(node, ast.Constant):
        return Const(node.value)
    if isinstance(node, ast.Name):
        return name(rehearsal, node, env)
    if isinstance(node, ast.Attribute):
        return effects.attribute(rehearsal, evaluate(rehearsal, node.value, env), node.attr, node)
    if isinstance(node, ast.Subscript):
        return index(rehearsal, evaluate(rehearsal, node.value, env), evaluate(rehearsal, node.slice, env), node)
    if isinstance(node, ast.Call):
        return effects.call(rehearsal, node, env)
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        found = Sequence([])
        for each in node.elts:
            if isinstance(each, ast.Starred):
                extend(found, evaluate(rehearsal, each.value, env))
            else:
                found.items.append(evaluate(rehearsal, each, env))
        return found
    if isinstance(node, ast.Dict):
        return Mapping(
            {
                dict_key(evaluate(rehearsal, k, env)): evaluate(rehearsal, v, env)
                for k, v in zip(node.keys, node.values)
                if k
            }
        )
    if isinstance(node, ast.BinOp):
        return combine(node.op, evaluate(rehearsal, node.left, env), evaluate(rehearsal, node.right, env))
    if isinstance(node, ast.UnaryOp):
        inner = evaluate(rehearsal, node.operand, env)
        if isinstance(node.op, ast.Not):
            truth = truth_of(inner)
            return Host() if truth is None else Const(not truth)
        if isinstance(inner, Const) and isinstance(inner.value, (int, float)) and isinstance(node.op, ast.USub):
            return Const(-inner.value)
        return mix([inner])
    if isinstance(node, ast.IfExp):
        truth = truth_of(evaluate(rehearsal, node.test, env))
        if truth is not None:
            return evaluate(rehearsal, node.body if truth else node.orelse, env)
        first, second = evaluate(rehearsal, node.body, env), evaluate(rehearsal, node.orelse, env)
        return first if not isinstance(first, (Const, Host)) else second
    if isinstance(node, ast.Compare):
        return compare(rehearsal, node, env)
    if isinstance(node, ast.BoolOp):
        return boolean(rehearsal, node, env)
    if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
        return comprehension(rehearsal, node.elt, node.generators, env)
    if isinstance(node, ast.DictComp):
        comprehension(rehearsal, node.value, node.generators, env)
        return Host()
    if isinstance(node, ast.Lambda):
        assert rehearsal.source is not None
        return Function(rehearsal.source, node, env)
    if isinstance(node, ast.NamedExpr):
        value = evaluate(rehearsal, node.value, env)
        rehearsal.assign(node.target, value, env, node)
        return value
    if isinstance(node, ast.Slice):
        return Sequence([evaluate(rehearsal, p, env) for p in (node.lower, node.upper, node.step)])
    if isinstance(node, (ast.Await, ast.YieldFrom, ast.Yield, ast.Starred)):
        return evaluate(rehearsal, node.value, env)
    return mix([evaluate(rehearsal, c, env) for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)])


def name(rehearsal: Rehearsal, node: ast.Name, env: Env) -> Any:
    """What a name is bound to; a gradient's numbers, named again, are used."""
    value = env.get(node.id)
    if value is None:
        assert rehearsal.source is not None
        warp = rehearsal.source.warp_name(node)
        return Library(f"builtins.{node.id}") if warp is None else Warp(warp)
    if isinstance(value, Host) and value.of_grad and value.view is not None:
        stale = rehearsal.zeroings.get(value.view.root, 0) != value.stamp
        rehearsal.emit("host_use", node, array=value.view, of_grad=True, what="zeroed" if stale else "")
    return value


def index(rehearsal: Rehearsal, owner: Any, key: Any, node: ast.AST) -> Any:
    """`owner[key]`."""
    if isinstance(owner, Sequence):
        if isinstance(key, Const) and isinstance(key.value, int):
            found = owner.get(key.value)
            return rehearsal.symbol("an element", node) if found is None else found
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            return slice_of(owner, key)
        return rehearsal.symbol("an element", node)
    if isinstance(owner, Mapping):
        return owner.items.get(dict_key(key)) or Host()
    if isinstance(owner, Symbol):
        if isinstance(key, Const) and isinstance(key.value, (int, str)):
            return owner.child(key.value)
        return rehearsal.symbol(f"{owner.name}[...]", node)
    if isinstance(owner, Array):
        return effects.view_of(rehearsal, owner, node)
    if isinstance(owner, Host):
        scalar = isinstance(key, Const) and isinstance(key.value, int)
        view = None if scalar else owner.view
        return Host(owner.arrays, owner.grads, view, owner.of_grad, owner.stamp, reads=owner.reads)
    if isinstance(owner, GradOf):
        return owner
    return Host()


def compare(rehearsal: Rehearsal, node: ast.Compare, env: Env) -> Any:
    left = evaluate(rehearsal, node.left, env)
    rights = [evaluate(rehearsal, c, env) for c in node.comparators]
    if len(rights) == 1:
        right, op = rights[0], node.ops[0]
        if isinstance(op, (ast.Is, ast.IsNot)) and isinstance(right, Const) and right.value is None:
            known = not isinstance(left, (Host, Symbol, Library))
            if known:
                none = isinstance(left, Const) and left.value is None
                return Const(none if isinstance(op, ast.Is) else not none)
        if isinstance(left, Const) and isinstance(right, Const):
            return compared(op, left.value, right.value)
    return mix([left, *rights])


def boolean(rehearsal: Rehearsal, node: ast.BoolOp, env: Env) -> Any:
    unknown = False
    value: Any = Host()
    for each in node.values:
        value = evaluate(rehearsal, each, env)
        truth = truth_of(value)
        if truth is None:
            unknown = True
        elif truth is isinstance(node.op, ast.Or):
            return value if not unknown or isinstance(node.op, ast.And) else Host()
    return Host() if unknown else value


def comprehension(rehearsal: Rehearsal, element: ast.expr, generators: list[ast.comprehension], env: Env) -> Any:
    """A list with known elements, or one that makes each element when it is asked for."""
    first = generators[0]
    over = evaluate(rehearsal, first.iter, env)
    indices, length = passes(over)
    shown = Env(dict(env.names), env.parent, env.outer)  # later assignments must not change what is made

    def make(index: object) -> Any:
        scope = Env({}, shown)
        each = elements(rehearsal, over, first, [index])
        rehearsal.assign(first.target, each[0] if each else Host(), scope, first)
        if len(generators) > 1:
            return comprehension(rehearsal, element, generators[1:], scope)
        made = evaluate(rehearsal, element, scope)
        return made

    if len(generators) > 1:
        inner = [make(i) for i in indices]
        return Sequence([x for s in inner if isinstance(s, Sequence) for x in s.items], open=True)
    if first.ifs or (length is not None and length <= 4):
        return Sequence([make(i) for i in indices], open=bool(first.ifs))
    return Sequence([], make, length=length)

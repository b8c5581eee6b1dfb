"""Follows the statements of the host code: blocks, branches, loops, `with`, definitions, imports, assignments."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from warp_debug_gradients.patterns import effects
from warp_debug_gradients.patterns.expressions import index
from warp_debug_gradients.patterns.iteration import elements
from warp_debug_gradients.patterns.operators import christen, combine, extend, held, truth_of
from warp_debug_gradients.patterns.values import (
    Class,
    Const,
    Env,
    Function,
    Host,
    KernelValue,
    Library,
    Sequence,
    TapeValue,
    Warp,
    arrays_in,
    host_sources,
)

if TYPE_CHECKING:
    from warp_debug_gradients.patterns.rehearsal import Rehearsal

RETURN, BREAK, CONTINUE = "return", "break", "continue"
Signal = tuple[str, Any] | None


def block(rehearsal: Rehearsal, body: list[ast.stmt], env: Env) -> Signal:
    """Follows statements until one leaves the block."""
    for each in body:
        rehearsal.spend()
        signal = statement(rehearsal, each, env)
        if signal is not None:
            return signal
    return None


def statement(rehearsal: Rehearsal, node: ast.stmt, env: Env) -> Signal:
    """Follows one statement."""
    if isinstance(node, ast.Expr):
        rehearsal.value(node.value, env)
    elif isinstance(node, ast.Assign):
        value = rehearsal.value(node.value, env)
        summed(rehearsal, node, env)
        for target in node.targets:
            assign(rehearsal, target, value, env, node)
        for container, element, text in rehearsal.rebound:  # after the whole statement: a swap is none
            if sum(each is element for each in held(container)) > 1:
                rehearsal.emit("rebind", node, arrays=arrays_in(element), what=text)
        rehearsal.rebound = []
    elif isinstance(node, ast.AnnAssign):
        if node.value is not None:
            assign(rehearsal, node.target, rehearsal.value(node.value, env), env, node)
    elif isinstance(node, ast.AugAssign):
        augment(rehearsal, node, env)
    elif isinstance(node, ast.Return):
        return RETURN, rehearsal.value(node.value, env)
    elif isinstance(node, ast.If):
        return condition(rehearsal, node, env)
    elif isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
        return loop(rehearsal, node, env)
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        return enter(rehearsal, node, env)
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        env.set(node.name, define(rehearsal, node, env))
    elif isinstance(node, ast.ClassDef):
        env.set(node.name, define_class(rehearsal, node, env))
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        imported(rehearsal, node, env)
    elif isinstance(node, (ast.Global, ast.Nonlocal)):
        env.outer |= set(node.names)
    elif isinstance(node, ast.Break):
        return BREAK, None
    elif isinstance(node, ast.Continue):
        return CONTINUE, None
    elif isinstance(node, ast.Match):
        rehearsal.branches += 1
        for case in node.cases:
            block(rehearsal, case.body, env)
        rehearsal.branches -= 1
    elif hasattr(node, "handlers"):  # try
        signal = block(rehearsal, getattr(node, "body", []), env)
        after = block(rehearsal, [*getattr(node, "orelse", []), *getattr(node, "finalbody", [])], env)
        return signal or after
    return None


def condition(rehearsal: Rehearsal, node: ast.If, env: Env) -> Signal:
    test = truth_of(rehearsal.value(node.test, env))
    if test is not None:
        return block(rehearsal, node.body if test else node.orelse, env)
    rehearsal.branches += 1
    first = block(rehearsal, node.body, env)
    second = block(rehearsal, node.orelse, env)
    rehearsal.branches -= 1
    return first if first and second else None


def loop(rehearsal: Rehearsal, node: ast.For | ast.AsyncFor | ast.While, env: Env) -> Signal:
    if isinstance(node, ast.While):
        rehearsal.value(node.test, env)
        given: list[Any] = [None, None]
    else:
        given = elements(rehearsal, rehearsal.value(node.iter, env), node)
    rehearsal.loops.append(id(node))
    result: Signal = None
    for number, each in enumerate(given):
        rehearsal.visit.append(number)
        if not isinstance(node, ast.While):
            assign(rehearsal, node.target, each, env, node)
        signal = block(rehearsal, node.body, env)
        rehearsal.visit.pop()
        if signal and signal[0] in (RETURN, BREAK):
            result = signal if signal[0] == RETURN else None
            break
    rehearsal.loops.pop()
    return result or block(rehearsal, node.orelse, env)


def enter(rehearsal: Rehearsal, node: ast.With | ast.AsyncWith, env: Env) -> Signal:
    outer, entered = rehearsal.tape, None
    for item in node.items:
        value = rehearsal.value(item.context_expr, env)
        if item.optional_vars is not None:
            assign(rehearsal, item.optional_vars, value, env, node)
        if isinstance(value, TapeValue):
            entered = value
            rehearsal.emit("tape_enter", node, subject=value, tape=None)
            rehearsal.tape = value
    signal = block(rehearsal, node.body, env)
    if entered is not None:
        rehearsal.emit("tape_exit", node, subject=entered, tape=None)
    rehearsal.tape = outer
    return signal


def define(rehearsal: Rehearsal, node: ast.FunctionDef | ast.AsyncFunctionDef, env: Env) -> Any:
    assert rehearsal.source is not None
    compiled = rehearsal.source.compiled.get(node)
    if compiled and isinstance(node, ast.FunctionDef):
        return KernelValue(rehearsal.source, node) if compiled.kind == "kernel" else Library(f"wp.func {node.name}")
    return Function(rehearsal.source, node, env)


def define_class(rehearsal: Rehearsal, node: ast.ClassDef, env: Env) -> Class:
    assert rehearsal.source is not None
    inner = Env({}, env)
    compiled = rehearsal.source.compiled.get(node)
    block(rehearsal, [s for s in node.body if not isinstance(s, ast.Expr)], inner)
    bases = [rehearsal.value(b, env) for b in node.bases]
    struct = compiled is not None and compiled.kind == "struct"
    return Class(node.name, rehearsal.source, node, env, bases, inner.names, struct)


def imported(rehearsal: Rehearsal, node: ast.Import | ast.ImportFrom, env: Env) -> None:
    assert rehearsal.source is not None
    bindings = rehearsal.program.bindings[id(rehearsal.source)]
    for name in node.names:
        local = name.asname or (name.name if isinstance(node, ast.ImportFrom) else name.name.partition(".")[0])
        bound = bindings.get(local)
        if name.name == "*" and isinstance(node, ast.ImportFrom):
            source = rehearsal.program.module(rehearsal.source, node.level, node.module or "")
            for key, value in (rehearsal.module(source).env.names if source else {}).items():
                if not key.startswith("_"):
                    env.set(key, value)
        elif local in rehearsal.source.aliases and (local != "wp" or bound is None):
            env.set(local, Warp(rehearsal.source.aliases[local]))
        elif bound is not None:
            module = rehearsal.module(bound.source)
            value = module.env.get(bound.name) if bound.name else module
            env.set(local, value if value is not None else Host(text=local))
        else:
            prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            env.set(local, Library(prefix + (name.name if prefix or name.asname else local)))


def assign(rehearsal: Rehearsal, target: ast.expr, value: Any, env: Env, node: ast.AST) -> None:
    """Binds a target."""
    if isinstance(target, ast.Starred):
        target = target.value
    if isinstance(target, (ast.Tuple, ast.List)):
        for position, each in enumerate(target.elts):
            part = index(rehearsal, value, Const(position), node) if not isinstance(value, Host) else value
            assign(rehearsal, each, part, env, node)
    elif isinstance(target, ast.Name):
        christen(value, target.id)
        env.set(target.id, value)
    elif isinstance(target, ast.Attribute):
        effects.set_attribute(rehearsal, rehearsal.value(target.value, env), target, value, node)
    elif isinstance(target, ast.Subscript):
        owner = rehearsal.value(target.value, env)
        effects.set_item(rehearsal, owner, rehearsal.value(target.slice, env), target, value, node)


def augment(rehearsal: Rehearsal, node: ast.AugAssign, env: Env) -> None:
    known = rehearsal.value(node.target, env)
    value = rehearsal.value(node.value, env)
    if isinstance(known, Host) and known.view is not None:
        rehearsal.emit("host_write", node, array=known.view, of_grad=known.of_grad, **host_sources([value]).listed())
        return
    if isinstance(node.op, ast.Add):
        added(rehearsal, node, known, value)
    if isinstance(known, Sequence) and isinstance(node.op, ast.Add):
        extend(known, value)
        return
    assign(rehearsal, node.target, combine(node.op, known, value), env, node)


def summed(rehearsal: Rehearsal, node: ast.Assign, env: Env) -> None:
    """`x = x + g`, as `x += g`."""
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Name) and isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        known = env.get(target.id)
        sides = [s for s in (value.left, value.right) if not (isinstance(s, ast.Name) and s.id == target.id)]
        if isinstance(known, Host) and len(sides) == 1 and isinstance(sides[0], ast.Name):
            added(rehearsal, node, known, rehearsal.value(sides[0], env))


def added(rehearsal: Rehearsal, node: ast.AST, known: Any, value: Any) -> None:
    """A gradient is added to a number on the host that holds an earlier reading of the same one."""
    added = host_sources([value])
    both = {a.root for a in host_sources([known]).grads} & {a.root for a in added.grads}
    if both:
        rehearsal.emit("host_add", node, arrays=list(both), reads=sorted(added.reads))

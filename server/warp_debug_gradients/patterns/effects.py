"""Attributes, items and calls in a rehearsal: what each does to the objects involved."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from warp_debug_gradients.patterns import warp_calls
from warp_debug_gradients.patterns.iteration import Reversed, Zip, count, make_range
from warp_debug_gradients.patterns.operators import christen, dict_key, extend, mix
from warp_debug_gradients.patterns.values import (
    Array,
    Class,
    Command,
    Const,
    Env,
    Function,
    GradOf,
    Host,
    Instance,
    Library,
    Mapping,
    Module,
    Optimizer,
    Sequence,
    Symbol,
    TapeValue,
    Warp,
    arrays_in,
    host_sources,
)

if TYPE_CHECKING:
    from warp_debug_gradients.patterns.rehearsal import Rehearsal

VIEWS = {"flatten", "reshape", "view", "contiguous", "transpose", "T"}
ARRAY_NAMES = {"numpy", "grad", "zero_", "fill_", "assign", "requires_grad", "to", "list", *VIEWS}
FACTS = {"shape", "size", "ndim", "dtype", "device", "strides", "capacity"}
NUMPY_VIEWS = {"reshape", "ravel", "view", "T", "squeeze", "transpose", "asarray", "atleast_1d"}
RANDOM_OFF = {"seed", "default_rng", "RandomState", "Generator", "manual_seed", "get_state", "set_state", "Random"}


# -- attributes ------------------------------------------------------------------------------------------


def attribute(rehearsal: Rehearsal, owner: Any, name: str, node: ast.AST) -> Any:
    """`owner.name`."""
    if isinstance(owner, Warp):
        return Warp(f"{owner.name}.{name}" if owner.name else name)
    if isinstance(owner, Library):
        return Library(f"{owner.name}.{name}")
    if isinstance(owner, Module):
        return owner.env.get(name) or Host()
    if isinstance(owner, Instance):
        return _member(rehearsal, owner, name, node)
    if isinstance(owner, Class):
        found = owner.lookup(name)
        return rehearsal.symbol(f"{owner.name}.{name}", node) if found is None else found
    if isinstance(owner, Array):
        if name == "grad":
            return GradOf(owner)
        if name == "ptr":
            return Host(frozenset({owner}), text="ptr")
        if name in FACTS:
            return Host()
        return owner.child(name) if isinstance(owner, Symbol) and name not in ARRAY_NAMES else Bound(owner, name)
    if isinstance(owner, Host):
        keeps = name in NUMPY_VIEWS
        return Bound(owner, name) if not keeps or name != "T" else owner
    return Bound(owner, name)


class Bound:
    """A method of something that is not a user's object."""

    def __init__(self, owner: Any, name: str) -> None:
        self.owner, self.name = owner, name


def _member(rehearsal: Rehearsal, owner: Instance, name: str, node: ast.AST) -> Any:
    if name in owner.attrs:
        return owner.attrs[name]
    found = owner.cls.lookup(name)
    if isinstance(found, Function):
        decorators = [d.id for d in getattr(found.node, "decorator_list", []) if isinstance(d, ast.Name)]
        method = Function(found.source, found.node, found.env, None if "staticmethod" in decorators else owner)
        if "property" in decorators or "cached_property" in decorators:
            return rehearsal.call(method, [], {}, node)
        return method
    if found is not None:
        return found
    made = rehearsal.symbol(f"{owner.name or 'self'}.{name}", node)
    owner.attrs[name] = made
    return made


def set_attribute(rehearsal: Rehearsal, owner: Any, target: ast.Attribute, value: Any, node: ast.AST) -> None:
    """`owner.name = value`."""
    name = target.attr
    if isinstance(owner, Instance):
        label = ast.unparse(target) if len(ast.unparse(target)) < 60 else name
        christen(value, label)
        owner.attrs[name] = value
        if owner.cls.struct and isinstance(value, Array):
            rehearsal.emit("struct_take", node, array=value, what=str(value.requires_grad))
    elif isinstance(owner, Array):
        if name == "requires_grad":
            before = owner.requires_grad
            owner.requires_grad = bool(value.value) if isinstance(value, Const) else None
            rehearsal.emit("requires_grad", node, array=owner, what=f"{before}->{owner.requires_grad}")
        elif name == "grad":
            warp_calls.zeroed(rehearsal, owner, node, "replaced")
        elif isinstance(owner, Symbol):
            owner.children[name] = value
    elif isinstance(owner, Module):
        owner.env.names[name] = value
    elif isinstance(owner, Class):
        owner.members[name] = value


def set_item(rehearsal: Rehearsal, owner: Any, key: Any, target: ast.Subscript, value: Any, node: ast.AST) -> None:
    """`owner[key] = value`."""
    if isinstance(owner, Sequence):
        if isinstance(key, Const) and isinstance(key.value, int):
            old = owner.get(key.value)
            if isinstance(value, (Array, Instance)) and value is not old:
                rehearsal.rebound.append((owner, value, ast.unparse(target.value)))
            if -len(owner.items) <= key.value < len(owner.items):
                owner.items[key.value] = value
            else:
                owner.made[key.value] = value
    elif isinstance(owner, Mapping):
        owner.items[dict_key(key)] = value
    elif isinstance(owner, Symbol) and isinstance(key, Const):
        if isinstance(value, Symbol):
            rehearsal.rebound.append((owner, value, ast.unparse(target.value)))
        owner.children[key.value] = value
    elif isinstance(owner, Host) and owner.view is not None:
        rehearsal.emit("host_write", node, array=owner.view, of_grad=owner.of_grad, **host_sources([value]).listed())


# -- containers ------------------------------------------------------------------------------------------


def view_of(rehearsal: Rehearsal, array: Array, node: ast.AST) -> Array:
    """A view of an array: it shares memory, and the gradient storage there is now."""
    view = Array(
        array.name, array.source, node, array.requires_grad, integer=array.integer, base=array, maker="view",
        visit=tuple(rehearsal.visit),
    )  # fmt: skip
    if rehearsal.source is not None:
        view.source = rehearsal.source
    return view


# -- calls -----------------------------------------------------------------------------------------------


def bind(
    rehearsal: Rehearsal, function: Any, args: list[Any], keywords: dict[str, Any], env: Env, unknown: bool
) -> None:
    """Arguments to parameters. Where nobody calls the function, parameters without a default are symbols."""
    spec = function.node.args
    params = [*spec.posonlyargs, *spec.args]
    given = [function.owner, *args] if function.owner is not None else list(args)
    decorators = [d.id for d in getattr(function.node, "decorator_list", []) if isinstance(d, ast.Name)]
    if "classmethod" in decorators and isinstance(function.owner, Instance):
        given[0] = function.owner.cls
    for param, value in zip(params, given):
        env.names[param.arg] = value
    if spec.vararg is not None:
        env.names[spec.vararg.arg] = Sequence(given[len(params) :])
    every = [*params, *spec.kwonlyargs]
    names = {p.arg for p in every}
    env.names.update({k: v for k, v in keywords.items() if k in names})
    if spec.kwarg is not None:
        env.names[spec.kwarg.arg] = Mapping({k: v for k, v in keywords.items() if k not in names})
    defaults = dict(zip([p.arg for p in reversed(params)], reversed(spec.defaults)))
    defaults.update({p.arg: d for p, d in zip(spec.kwonlyargs, spec.kw_defaults) if d is not None})
    for param in every:
        if param.arg in env.names:
            continue
        if param.arg in defaults:
            env.names[param.arg] = rehearsal.value(defaults[param.arg], function.env)
        else:
            scalar = isinstance(param.annotation, ast.Name) and param.annotation.id in ("int", "float", "str", "bool")
            env.names[param.arg] = Host() if scalar or not unknown else rehearsal.symbol(param.arg, param)


def call(rehearsal: Rehearsal, node: ast.Call, env: Env) -> Any:
    """A call."""
    callee = rehearsal.value(node.func, env)
    args: list[Any] = []
    for each in node.args:
        if isinstance(each, ast.Starred):
            spread = rehearsal.value(each.value, env)
            args += spread.items if isinstance(spread, Sequence) else [Host()]
        else:
            args.append(rehearsal.value(each, env))
    keywords = {k.arg: rehearsal.value(k.value, env) for k in node.keywords if k.arg}
    for each in node.keywords:
        if each.arg is None:
            spread = rehearsal.value(each.value, env)
            if isinstance(spread, Mapping):
                keywords.update({k: v for k, v in spread.items.items() if isinstance(k, str)})
    if isinstance(callee, Function):
        return rehearsal.call(callee, args, keywords, node)
    if isinstance(callee, Class):
        return rehearsal.construct(callee, args, keywords, node)
    if isinstance(callee, Instance):
        method = callee.cls.lookup("__call__") or callee.cls.lookup("forward")
        if isinstance(method, Function):
            return rehearsal.call(Function(method.source, method.node, method.env, callee), args, keywords, node)
    if isinstance(callee, Warp):
        return warp_calls.call(rehearsal, callee.name, node, args, keywords)
    if isinstance(callee, Bound):
        return _method(rehearsal, callee.owner, callee.name, node, args, keywords)
    if isinstance(callee, Library):
        return _library(rehearsal, callee.name, node, args, keywords)
    return _foreign(rehearsal, node, args, keywords, callee)


def _foreign(rehearsal: Rehearsal, node: ast.AST, args: list[Any], keywords: dict[str, Any], callee: Any) -> Any:
    """Code that is not there to be read: it may do anything with what it is given."""
    if rehearsal.tape is not None:
        rehearsal.emit("foreign", node, arrays=[a for v in [*args, *keywords.values()] for a in arrays_in(v)])
    if isinstance(callee, Symbol):
        return rehearsal.symbol(f"{callee.name}()", node)
    return mix([*args, *keywords.values()])


def _library(rehearsal: Rehearsal, name: str, node: ast.Call, args: list[Any], keywords: dict[str, Any]) -> Any:
    head, _, short = name.rpartition(".")
    if head == "builtins":
        return _builtin(rehearsal, short, node, args, keywords)
    if short in RANDOM_OFF:
        pinned = bool(args) or bool(keywords) or short in ("Generator", "get_state")
        rehearsal.emit("random", node, what="seeded" if pinned else "unseeded", arrays=[])
        return Library("seeded" if pinned else "unseeded.random")
    if head == "seeded" or head.startswith("seeded."):
        return Host()
    if ".random" in f".{name}" or (head.startswith("torch") and short.startswith("rand")):
        rehearsal.emit("random", node, what=f"drawn:{name}")
        return Host()
    if head == "time" and short.startswith(("time", "perf_counter", "monotonic", "process_time")):
        return Host(text="clock")
    if short in ("array", "copy", "deepcopy", "copyto") and args:
        return mix(args)
    if short in NUMPY_VIEWS and args and isinstance(args[0], Host):
        return args[0]
    if short in ("partial",) and args:
        return args[0]
    if short in ("backward", "step") or head.startswith("wp.func"):
        return Host()
    if short in ("SGD", "Adam", "AdamW", "LBFGS", "RMSprop"):
        return Optimizer([a for v in args[:1] for a in arrays_in(v)])
    if short == "mean" and args:
        rehearsal.emit("reduced", node, arrays=list(host_sources(args).arrays), what="mean")
    known = name.startswith(("numpy", "np.", "math", "time", "os", "sys", "json", "argparse", "matplotlib", "plt"))
    if not known and any(arrays_in(v) for v in [*args, *keywords.values()]):
        return _foreign(rehearsal, node, args, keywords, None)
    if not known and rehearsal.tape is not None:
        rehearsal.emit("foreign", node)
    return mix([*args, *keywords.values()])


def _builtin(rehearsal: Rehearsal, name: str, node: ast.Call, args: list[Any], keywords: dict[str, Any]) -> Any:
    if name == "range":
        return make_range(args)
    if name == "zip":
        return Zip(args)
    if name == "enumerate" and args:
        start = args[1] if len(args) > 1 else keywords.get("start", Const(0))
        return Zip([make_range([start, Const(10**9)]), args[0]])
    if name == "reversed" and args:
        return Reversed(args[0])
    if name in ("list", "tuple", "sorted"):
        if not args:
            return Sequence([])
        if isinstance(args[0], Sequence):
            copy = args[0]
            return Sequence(list(copy.items), copy.template, copy.open, copy.made, copy.length)
        return args[0] if not isinstance(args[0], Const) else Sequence([], open=True)
    if name == "dict":
        return Mapping({**keywords})
    if name == "len" and args:
        total = count(args[0])
        known = total is not None and not (isinstance(args[0], Sequence) and args[0].open)
        return Const(total) if known else Host()
    if name in ("int", "float", "abs", "round") and len(args) == 1 and isinstance(args[0], Const):
        return args[0]
    if name in ("min", "max") and args and all(isinstance(a, Const) for a in args):
        try:
            return Const({"min": min, "max": max}[name](a.value for a in args))
        except TypeError:
            return Host()
    if name in ("getattr",) and len(args) >= 2 and isinstance(args[1], Const) and isinstance(args[1].value, str):
        return attribute(rehearsal, args[0], args[1].value, node)
    if name == "super":
        return Host()
    return mix([*args, *keywords.values()])


def _method(
    rehearsal: Rehearsal, owner: Any, name: str, node: ast.Call, args: list[Any], keywords: dict[str, Any]
) -> Any:
    if isinstance(owner, (Array, GradOf)):
        return warp_calls.array_method(rehearsal, owner, name, node, args, keywords)
    if isinstance(owner, TapeValue):
        return warp_calls.tape_method(rehearsal, owner, name, node, args, keywords)
    if isinstance(owner, Optimizer):
        return warp_calls.optimizer_method(rehearsal, owner, name, node, args)
    if isinstance(owner, Command) and name == "launch":
        rehearsal.emit("unrecorded", node, what="a recorded command", array=None)
        return Host()
    if isinstance(owner, Sequence):
        if name == "append" and args:
            if owner.template is None:
                owner.items.append(args[0])
            else:
                owner.made[-1] = args[0]
        elif name == "extend" and args:
            extend(owner, args[0])
        elif name == "copy":
            return Sequence(list(owner.items), owner.template, owner.open, owner.made, owner.length)
        elif name == "pop":
            return owner.items.pop() if owner.items and not args else rehearsal.symbol("an element", node)
        elif name == "clear":
            owner.items.clear()
        return Host()
    if isinstance(owner, Mapping):
        if name == "values":
            return Sequence(list(owner.items.values()))
        if name == "items":
            return Sequence([Sequence([Const(k), v]) for k, v in owner.items.items()])
        if name == "get" and args:
            return owner.items.get(dict_key(args[0])) or Host()
        return Host()
    if isinstance(owner, Host):
        if name in NUMPY_VIEWS:
            return owner
        mixed = mix([owner, *args])
        if name in ("mean", "sum") and owner.arrays:
            rehearsal.emit("reduced", node, arrays=list(owner.arrays), what=name)
        return mixed
    return mix([*args, *keywords.values()])

"""Warp's own functions and methods in a rehearsal: allocation, launches, copies, tapes, gradients."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from warp_debug_gradients.patterns.events import Touch
from warp_debug_gradients.patterns.kernels import Kernel, is_integer
from warp_debug_gradients.patterns.operators import mix
from warp_debug_gradients.patterns.source import arithmetic
from warp_debug_gradients.patterns.values import (
    Array,
    Command,
    Const,
    GradOf,
    Host,
    Instance,
    Mapping,
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

MAKERS = {"zeros", "ones", "empty", "full", "array", "from_numpy", "array2d", "array3d", "array4d"}
LIKE = {"zeros_like", "ones_like", "empty_like", "full_like"}
UNRECORDED = {"utils.array_sum", "utils.array_inner", "utils.array_scan", "utils.segmented_sort_pairs"}
BRIDGES = {"to_torch", "from_torch", "to_jax", "from_jax", "to_paddle", "from_paddle", "to_dlpack", "from_dlpack"}
OPTIMIZERS = {"optim.Adam", "optim.SGD", "Adam", "SGD"}


def call(rehearsal: Rehearsal, name: str, node: ast.Call, args: list[Any], keywords: dict[str, Any]) -> Any:
    """A call of `warp.<name>`."""
    short = name.rsplit(".", 1)[-1]
    if short in ("launch", "launch_tiled"):
        return launch(rehearsal, node, args, keywords)
    if short in MAKERS:
        return _made(rehearsal, short, node, args, keywords)
    if short in LIKE and args:
        like = args[0] if isinstance(args[0], Array) else None
        return rehearsal.new_array(
            node,
            requires_grad=_flag(keywords, "requires_grad", like.requires_grad if like else None),
            retain_grad=_flag(keywords, "retain_grad", False) is True,
            integer=like.integer if like else False,
            maker=short,
        )
    if short == "clone" and args:
        return _clone(
            rehearsal, node, args[0], _flag(keywords, "requires_grad", getattr(args[0], "requires_grad", None))
        )
    if short == "copy":
        dest = args[0] if args else keywords.get("dest")
        src = args[1] if len(args) > 1 else keywords.get("src")
        if isinstance(dest, Array):
            rehearsal.emit("copy", node, array=dest, other=src if isinstance(src, Array) else None, what="copy")
            if isinstance(src, GradOf):
                rehearsal.emit("host_read", node, array=src.array, of_grad=True, copied=True)
        elif isinstance(dest, GradOf):
            rehearsal.emit("seed_write", node, array=dest.array, what="new values")
        return Const(None)
    if short == "Tape":
        assert rehearsal.source is not None
        return TapeValue(rehearsal.source, node)
    if name in UNRECORDED or short in {u.rsplit(".", 1)[-1] for u in UNRECORDED}:
        out = keywords.get("out") or (args[1] if len(args) > 1 else None)
        source = args[0] if args and isinstance(args[0], Array) else None
        rehearsal.emit("unrecorded", node, array=source, other=out if isinstance(out, Array) else None, what=short)
        return Host(frozenset({source}) if source else frozenset())
    if short in BRIDGES:
        source = args[0] if args else None
        arrays = arrays_in(source) or list(host_sources([source]).arrays)
        rehearsal.emit("bridge", node, arrays=arrays, what=short)
        if short.startswith("from_"):
            return rehearsal.new_array(node, requires_grad=_flag(keywords, "requires_grad", None), maker=short,
                                       made_from=tuple(arrays))  # fmt: skip
        return Host(frozenset(arrays))
    if name in OPTIMIZERS:
        return Optimizer([a for v in [*args[:1], *keywords.values()] for a in arrays_in(v)])
    if short in ("func", "kernel", "constant", "static") and args:
        return args[0]  # step = wp.kernel(step_function): SourceFile.compiled knows the function as a kernel
    if short[:1].isupper() or short.startswith(("vec", "mat", "quat", "transform")):
        return Host()
    if rehearsal.tape is not None and any(arrays_in(v) for v in [*args, *keywords.values()]):
        rehearsal.emit("foreign", node, arrays=[a for v in [*args, *keywords.values()] for a in arrays_in(v)])
    return mix([*args, *keywords.values()])


def _flag(keywords: dict[str, Any], name: str, default: bool | None) -> bool | None:
    if name not in keywords:
        return default
    value = keywords[name]
    return bool(value.value) if isinstance(value, Const) else None


def _made(rehearsal: Rehearsal, short: str, node: ast.Call, args: list[Any], keywords: dict[str, Any]) -> Array:
    given = args[0] if args else keywords.get("data")
    base: Array | None = None
    if "ptr" in keywords:
        sources = list(host_sources([keywords["ptr"]]).arrays)
        base = sources[0] if sources else None
    elif short == "array" and isinstance(given, Array) and isinstance(keywords.get("copy"), Const):
        base = given if not keywords["copy"].value else None
    dtype = keywords.get("dtype") or (args[1] if len(args) > 1 and short != "full" else None)
    text = dtype.name if isinstance(dtype, Warp) else getattr(dtype, "name", "") or ""
    arrays, grads, reads = host_sources([given] if short in ("array", "from_numpy") else [])
    return rehearsal.new_array(
        node,
        grads,
        reads if grads else (),
        requires_grad=_flag(keywords, "requires_grad", False),
        retain_grad=_flag(keywords, "retain_grad", False) is True,
        integer=is_integer(str(text).rsplit(".", 1)[-1]),
        base=base,
        maker="ptr" if base is not None else short,
        made_from=tuple(arrays),
    )


def _clone(rehearsal: Rehearsal, node: ast.AST, given: Any, requires_grad: bool | None) -> Any:
    if isinstance(given, GradOf):
        return rehearsal.new_array(node, requires_grad=False, maker="clone of a gradient", gradient_of=given.array)
    if not isinstance(given, Array):
        return rehearsal.symbol("a clone", node)
    made = rehearsal.new_array(node, requires_grad=requires_grad, integer=given.integer, maker="clone")
    rehearsal.emit("copy", node, array=made, other=given, what="clone")
    return made


# -- launches --------------------------------------------------------------------------------------------


def launch(rehearsal: Rehearsal, node: ast.Call, args: list[Any], keywords: dict[str, Any]) -> Any:
    """`wp.launch(kernel, dim, inputs, outputs, ...)`."""
    target = args[0] if args else keywords.get("kernel")
    kernel = rehearsal.kernel(target)
    inputs = args[2] if len(args) > 2 else keywords.get("inputs")
    outputs = args[3] if len(args) > 3 else keywords.get("outputs")
    known = all(g is None or (isinstance(g, Sequence) and g.template is None and not g.open) for g in (inputs, outputs))
    given = [*_items(inputs), *_items(outputs)]
    recorded = _flag(keywords, "record_tape", True) is not False and not _flag(keywords, "record_cmd", False)
    touches = _touches(rehearsal, kernel, given) if kernel is not None and known else _unknown(given, _items(outputs))
    grads = [g.array for g in given if isinstance(g, GradOf)]
    for value in given:
        grads += host_sources([value]).grads if isinstance(value, Host) else []
    hosts = [a for v in given if isinstance(v, Host) for a in v.arrays]
    event = rehearsal.emit(
        "launch", node, kernel=kernel, touches=touches, grads=grads, arrays=hosts, recorded=recorded,
        what=kernel.name if kernel else "?",
    )  # fmt: skip
    if any(isinstance(v, Host) and v.text == "clock" for v in given):
        rehearsal.emit("random", node, what="drawn:the clock")
    _gradients_written(rehearsal, kernel, given, node)
    if rehearsal.tape is not None and not recorded:
        how = "record_tape=False" if "record_tape" in keywords else "record_cmd=True"
        rehearsal.emit("unrecorded", node, what=how, array=None, touches=event.touches)
    return Command(target) if _flag(keywords, "record_cmd", False) else Const(None)


def _gradients_written(rehearsal: Rehearsal, kernel: Kernel | None, given: list[Any], node: ast.AST) -> None:
    """A kernel of the user's that zeroes or fills a gradient."""
    for param, value in zip(kernel.params if kernel else [], given):
        if isinstance(value, GradOf) and kernel is not None:
            stores = [s for s in kernel.stores if s.path == param]
            if any(s.how == "store" and not s.vals for s in stores):
                zeroed(rehearsal, value.array, node, kernel.name)
            elif stores:
                rehearsal.emit("seed_write", node, array=value.array)


def _items(value: Any) -> list[Any]:
    return list(value.items) if isinstance(value, Sequence) else []


def _unknown(given: list[Any], outputs: list[Any]) -> list[Touch]:
    """A launch whose kernel or arguments are not known: only that the arrays are on the tape."""
    arrays = [a for v in given for a in arrays_in(v)]
    written = {id(a) for v in outputs for a in arrays_in(v)}
    return [
        Touch(a, a.name, id(a) not in written, [], id(a) in written, False, False, arrays if id(a) in written else [])
        for a in arrays
    ]


def _touches(rehearsal: Rehearsal, kernel: Kernel, given: list[Any]) -> list[Touch]:
    bound = dict(zip(kernel.params, given))
    resolved: dict[str, Array | None] = {}

    def at(path: str) -> Array | None:
        if path not in resolved:
            value: Any = bound.get(path.split(".")[0])
            for name in path.split(".")[1:]:
                value = (
                    value.attrs.get(name) if isinstance(value, Instance)
                    else value.child(name) if isinstance(value, Symbol) else None
                )  # fmt: skip
            resolved[path] = value if isinstance(value, Array) else None
        return resolved[path]

    touches: list[Touch] = []
    for path in sorted(kernel.loaded | kernel.written):
        array = at(path)
        if array is None:
            continue
        stores = [s for s in kernel.stores if s.path == path]
        sources = [a for p in sorted(kernel.flows(path)) if (a := at(p)) is not None]
        touches.append(
            Touch(
                array,
                path,
                path in kernel.loaded,
                [a for p in sorted(kernel.needs.get(path, ())) if (a := at(p)) is not None],
                any(s.how == "store" for s in stores),
                any(s.how == "accumulate" for s in stores),
                any(s.how == "update" for s in stores),
                sources,
                [
                    _slot(kernel, a.coords, bound)
                    for a in kernel.loads
                    if a.path == path and ((path, a.order) in kernel.needed or path not in kernel.needs)
                ],
                [_slot(kernel, s.coords, bound) for s in stores],
                stores[0].node if stores else None,
            )
        )
    for path, value in bound.items():  # arrays that the kernel never touches are on the tape all the same
        if isinstance(value, Array) and path not in kernel.loaded | kernel.written:
            touches.append(Touch(value, path, False, [], False, False, False, []))
    return touches


def _slot(kernel: Kernel, coords: tuple[str | None, ...], bound: dict[str, Any]) -> tuple[object, ...]:
    """Which part of the array: numbers where the launch decides them, None for any; unknown ones are unique."""
    slot: list[object] = []
    for text in coords:
        if text is None:
            slot.append(None)
            continue
        tree = ast.parse(text, mode="eval").body
        names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        if names <= set(kernel.params) | set(kernel.source.constants):
            number = _evaluate(tree, bound, kernel)
            slot.append(object() if number is None else number)
        else:
            slot.append(None if names & kernel.counters else object())
    return tuple(slot)


def _evaluate(node: ast.AST, bound: dict[str, Any], kernel: Kernel) -> float | int | None:
    if isinstance(node, ast.Name):
        value = bound.get(node.id)
        if isinstance(value, Const) and isinstance(value.value, (int, float)):
            return value.value
        return kernel.source.constants.get(node.id) if node.id not in bound else None
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, (int, float)) else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _evaluate(node.operand, bound, kernel)
        return None if inner is None else -inner
    if isinstance(node, ast.BinOp):
        left, right = _evaluate(node.left, bound, kernel), _evaluate(node.right, bound, kernel)
        if left is None or right is None:
            return None
        op = ast.FloorDiv() if isinstance(node.op, ast.Div) and isinstance(left, int) else node.op  # C's division
        return arithmetic(op, left, right)
    return None


# -- methods ---------------------------------------------------------------------------------------------


def array_method(
    rehearsal: Rehearsal, owner: Array | GradOf, name: str, node: ast.Call, args: list[Any], keywords: dict[str, Any]
) -> Any:
    """A method of an array or of its gradient."""
    of_grad = isinstance(owner, GradOf)
    array = owner.array if isinstance(owner, GradOf) else owner
    if name in ("numpy", "list"):
        read = rehearsal.emit("host_read", node, array=array, of_grad=of_grad)
        sources = frozenset({array})
        view = array if name == "numpy" else None
        stamp = rehearsal.zeroings.get(array.root, 0)
        if of_grad:
            return Host(frozenset(), sources, view, True, stamp, reads=frozenset({read.order}))
        return Host(sources, frozenset(), view, False, stamp)
    if name in ("zero_", "fill_", "assign"):
        given = args[0] if args else None
        if of_grad:
            zero = name == "zero_" or (isinstance(given, Const) and given.value == 0)
            if zero:
                zeroed(rehearsal, array, node, name)
            else:
                rehearsal.emit("seed_write", node, array=array, what="new values")
        elif isinstance(given, Array):
            rehearsal.emit("copy", node, array=array, other=given, what="assign")
        else:
            rehearsal.emit("reset", node, array=array, what=name, **host_sources([given]).listed())
        return owner
    if of_grad:
        return owner
    if name in ("flatten", "reshape", "view", "contiguous", "transpose"):
        from warp_debug_gradients.patterns.effects import view_of

        return view_of(rehearsal, array, node)
    if name == "to":
        return _clone(rehearsal, node, array, array.requires_grad)
    if isinstance(owner, Symbol):
        if rehearsal.tape is not None:
            rehearsal.emit("foreign", node)
        return rehearsal.symbol(f"{owner.name}.{name}()", node)
    return Host()


def zeroed(rehearsal: Rehearsal, array: Array, node: ast.AST, how: str) -> None:
    """The gradient of an array is zero from here on."""
    rehearsal.zeroings[array.root] = rehearsal.zeroings.get(array.root, 0) + 1
    rehearsal.emit("grad_zero", node, array=array, what=how)


def tape_method(
    rehearsal: Rehearsal, tape: TapeValue, name: str, node: ast.Call, args: list[Any], keywords: dict[str, Any]
) -> Any:
    """A method of a tape."""
    if name == "backward":
        loss = args[0] if args else keywords.get("loss")
        seeds = keywords.get("grads") or (args[1] if len(args) > 1 else None)
        pairs: list[tuple[Array, Any]] = []
        if isinstance(seeds, Mapping):
            by_id = {id(a): a for a in _every_array(rehearsal)}
            pairs = [(by_id[k], v) for k, v in seeds.items.items() if isinstance(k, int) and k in by_id]
        rehearsal.emit(
            "backward", node, subject=tape, array=loss if isinstance(loss, Array) else None, seeds=pairs,
            what="seeded" if seeds is not None else "" if loss is not None else "bare",
            other=None, arrays=list(rehearsal.on_tape.get(tape, [])),
        )  # fmt: skip
        rehearsal.gradients_of.add(tape)
    elif name in ("zero", "reset"):
        arrays = list(rehearsal.on_tape.get(tape, [])) if tape in rehearsal.gradients_of else []
        for array in {a.root for a in arrays}:
            rehearsal.zeroings[array] = rehearsal.zeroings.get(array, 0) + 1
        rehearsal.emit(f"tape_{name}", node, subject=tape, arrays=arrays, tape=None)
        if name == "reset":
            rehearsal.on_tape.pop(tape, None)
            rehearsal.gradients_of.discard(tape)
    elif name == "record_func":
        rehearsal.emit("foreign", node, what="record_func", tape=tape)
    return Host()


def _every_array(rehearsal: Rehearsal) -> list[Array]:
    found: list[Array] = []
    for event in rehearsal.events:
        found += [a for a in (event.array, event.other) if a is not None]
        found += [t.array for t in event.touches]
    return found


def optimizer_method(rehearsal: Rehearsal, owner: Optimizer, name: str, node: ast.Call, args: list[Any]) -> Any:
    """A method of an optimizer."""
    if name == "step":
        values = [v for a in args for v in (a.items if isinstance(a, Sequence) else [a])]
        grads = [g.array for g in values if isinstance(g, GradOf)]
        rehearsal.emit("step", node, arrays=list(owner.params), grads=grads)
    elif name in ("zero_grad", "zero"):
        for array in owner.params:
            zeroed(rehearsal, array, node, name)
    elif name in ("set_params",) and args:
        owner.params = arrays_in(args[0])
    return Host()

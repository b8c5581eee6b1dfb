"""What operators, indices and conditions make of abstract values; nothing else is touched."""

from __future__ import annotations

import ast
from typing import Any

from warp_debug_gradients.patterns.source import arithmetic
from warp_debug_gradients.patterns.values import (
    Array,
    Const,
    Function,
    Host,
    Instance,
    Sequence,
    Symbol,
    TapeValue,
    host_sources,
)


def christen(value: Any, name: str) -> None:
    """Gives an object the name of the variable that it is first bound to."""
    if isinstance(value, (Array, Instance, TapeValue)) and value.name in ("", "tape"):
        value.name = name
    elif isinstance(value, Sequence):
        for position, each in enumerate(value.items[:8]):
            christen(each, f"{name}[{position}]")


def dict_key(value: Any) -> object:
    """A dict key, where it is known."""
    known = value.value if isinstance(value, Const) else None
    return known if isinstance(known, (int, str, float)) else id(value)


def truth_of(value: Any) -> bool | None:
    """Whether a condition holds, where that is known."""
    if isinstance(value, Const):
        return bool(value.value)
    if isinstance(value, (Array, Instance, TapeValue, Function)) and not isinstance(value, Symbol):
        return True
    return None


def combine(op: ast.operator, left: Any, right: Any) -> Any:
    """A binary operation."""
    if isinstance(left, Const) and isinstance(right, Const):
        if isinstance(left.value, (int, float)) and isinstance(right.value, (int, float)):
            number = arithmetic(op, left.value, right.value)
            return Host() if number is None else Const(number)
        return Host()
    if isinstance(op, ast.Add) and isinstance(left, Sequence) and isinstance(right, Sequence):
        both = Sequence(list(left.items), left.template, left.open, left.made, left.length)
        extend(both, right)
        return both
    if isinstance(op, ast.Mult) and isinstance(left, Sequence):
        known = len(left.items) == 1 and left.template is None
        return Sequence(left.items * 3, None, True) if known else Sequence(list(left.items), left.template, True)
    return mix([left, right])


def mix(values: list[Any]) -> Host:
    """A host value computed from others."""
    sources = host_sources(values)
    clock = any(isinstance(v, Host) and v.text == "clock" for v in values)
    return Host(sources.arrays, sources.grads, text="clock" if clock else "", reads=sources.reads)


def held(container: Any) -> list[Any]:
    """What a list (or a symbol that is used as one) is known to hold."""
    if isinstance(container, Sequence):
        return [*container.items, *container.made.values()]
    return list(container.children.values()) if isinstance(container, Symbol) else []


def extend(sequence: Sequence, more: Any) -> None:
    """Appends what another sequence holds."""
    if not isinstance(more, Sequence):
        sequence.open = True
        return
    if more.template is not None and sequence.template is None:
        shift, inner = len(sequence.items), more
        sequence.template = lambda i: inner.get(i - shift) if isinstance(i, int) and i >= shift else inner.get(-1)
        sequence.length = None if inner.length is None else inner.length + shift
    else:
        sequence.items.extend(more.items)
    sequence.open = sequence.open or more.open


def slice_of(sequence: Sequence, key: Any) -> Any:
    """`sequence[a:b]`."""
    if not isinstance(key, Sequence) or len(key.items) != 3 or not all(isinstance(b, Const) for b in key.items):
        return Sequence([], open=True)
    bounds: list[Any] = [b.value for b in key.items]
    if bounds[2] not in (None, 1) or not all(b is None or isinstance(b, int) for b in bounds):
        return Sequence([], open=True)
    low, high = bounds[0] or 0, bounds[1]
    if sequence.template is None:
        return Sequence(sequence.items[low:high], open=sequence.open)
    if low < 0 or (high is not None and high < 0 and sequence.length is None):
        return Sequence([], open=True)
    total = sequence.length
    stop = total if high is None else high + total if high < 0 and total is not None else high
    length = None if stop is None else max(stop - low, 0)
    return Sequence([], lambda i: sequence.get(i + low) if isinstance(i, int) else None, length=length)


def compared(op: ast.cmpop, left: Any, right: Any) -> Any:
    """A comparison of known values."""
    try:
        if isinstance(op, (ast.Eq, ast.Is)):
            return Const(left == right)
        if isinstance(op, (ast.NotEq, ast.IsNot)):
            return Const(left != right)
        if isinstance(op, ast.Lt):
            return Const(left < right)
        if isinstance(op, ast.LtE):
            return Const(left <= right)
        if isinstance(op, ast.Gt):
            return Const(left > right)
        if isinstance(op, ast.GtE):
            return Const(left >= right)
    except TypeError:
        pass
    return Host()

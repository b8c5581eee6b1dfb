"""A new value in the place of a constant's: as syntax, with the type that the old one has; refused where they clash. Pure."""

from __future__ import annotations

import ast
import math
from typing import Any

_INTS = {"int", *(f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64))}
_FLOATS = {"float", "float16", "float32", "float64", "bfloat16"}
_NUMBERS_BY_NAME = {"pi", "tau", "inf", "nan", "PI", "TAU", "INF", "NAN"}
_KINDS_OF_SYNTAX: dict[type, str] = {
    ast.JoinedStr: "str",
    ast.Compare: "bool",
    ast.List: "list",
    ast.Tuple: "tuple",
    ast.Set: "set",
    ast.Dict: "dict",
}
# One-argument calls that give a constant its type and are therefore kept around the new value.
_WRAPPER_KINDS = {
    **dict.fromkeys(_INTS, "int"),
    **dict.fromkeys(_FLOATS, "float"),
    **dict.fromkeys(("bool", "bool_"), "bool"),
    **dict.fromkeys(("str", "Path", "PurePath"), "str"),
    **dict.fromkeys(("constant", "array", "asarray", "tuple", "list", "set", "frozenset"), None),
}


def fitted(old: ast.expr | None, value: Any, kind: str | None = None) -> ast.expr:
    """The syntax node for `value` in the place of `old` (a node, or None); TypeError if the types clash."""
    if value is None:
        return ast.Constant(None)
    if isinstance(old, ast.Call):
        kept = _fitted_call(old, value, kind)
        if kept is not None:
            return kept
    return _literal(_checked(kind or kind_of(old), value, old))


def _fitted_call(call: ast.Call, value: Any, kind: str | None) -> ast.expr | None:
    """The same call around the new value, where the call is a type or a `field(default=...)`; else None."""
    name = called(call)
    keywords = {each.arg: each for each in call.keywords}
    if name == "field" and "default" in keywords:
        keywords["default"].value = fitted(keywords["default"].value, value, kind)
        return call
    if name == "field" and "default_factory" in keywords:
        made = keywords["default_factory"].value
        made = made.body if isinstance(made, ast.Lambda) else None
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        keywords["default_factory"].value = ast.Lambda(nothing, fitted(made, value))
        return call
    if call.keywords or not call.args or any(isinstance(arg, ast.Starred) for arg in call.args):
        return None
    several = isinstance(value, (list, tuple))
    if several and (len(call.args) == len(value) > 1 or _is_vector_type(name)):  # wp.vec3(0.0, -9.8, 0.0)
        olds = call.args if len(call.args) == len(value) else [call.args[0]] * len(value)
        return ast.Call(call.func, [fitted(*pair) for pair in zip(olds, value, strict=True)], [])
    if len(call.args) == 1 and name in _WRAPPER_KINDS:
        return ast.Call(call.func, [fitted(call.args[0], value, _WRAPPER_KINDS[name])], [])
    return None


def _is_vector_type(name: str) -> bool:
    return name.rstrip("0123456789fdhiublsc").startswith(("vec", "quat", "mat", "transform"))


def called(call: ast.Call) -> str:
    return getattr(call.func, "attr", None) or getattr(call.func, "id", "")


def _checked(kind: str | None, value: Any, old: ast.expr | None) -> Any:
    """`value` as the kind of constant it replaces; TypeError where Python would compute something else."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind == "bool" and not isinstance(value, bool):
        raise TypeError(f"a bool cannot become {value!r}")
    if kind == "int":
        if not number or not math.isfinite(value) or value != int(value):
            raise TypeError(f"an int cannot become {value!r}")
        return int(value)
    if kind == "float":
        if value in ("nan", "inf", "-inf"):
            return float(value)
        if not number:
            raise TypeError(f"a float cannot become {value!r}")
        return float(value)
    if kind == "str" and not isinstance(value, str):
        raise TypeError(f"a str cannot become {value!r}; as a text it is written {str(value)!r}, with the quotes")
    if kind == "dict" and not isinstance(value, dict):
        raise TypeError(f"a dict cannot become {value!r}")
    if kind in ("list", "tuple", "set"):
        if not isinstance(value, (list, tuple)):
            raise TypeError(f"a {kind} cannot become {value!r}")
        inner = {kind_of(each) for each in old.elts} if isinstance(old, (ast.List, ast.Tuple, ast.Set)) else set()
        if inner == {"float"}:
            value = [_checked("float", each, None) for each in value]
        return {"list": list, "tuple": tuple, "set": set}[kind](value)
    return value


def kind_of(node: ast.expr | None) -> str | None:
    """What type an expression has, as far as its text alone says; None where it does not."""
    if isinstance(node, ast.Constant):
        names: dict[type, str] = {bool: "bool", int: "int", float: "float", str: "str"}
        return names.get(type(node.value))
    if isinstance(node, ast.UnaryOp):
        return "bool" if isinstance(node.op, ast.Not) else kind_of(node.operand)
    if isinstance(node, ast.BinOp):
        kinds = {kind_of(node.left), kind_of(node.right)}
        if kinds <= {"int", "float"}:
            return "float" if isinstance(node.op, ast.Div) or "float" in kinds else "int"
        return None
    if isinstance(node, ast.Attribute):
        return "float" if node.attr in _NUMBERS_BY_NAME else None
    if isinstance(node, ast.Call):
        return _WRAPPER_KINDS.get(called(node))
    return _KINDS_OF_SYNTAX.get(type(node))


def annotated_kind(annotation: ast.expr | None) -> str | None:
    if isinstance(annotation, ast.Subscript) and _last_name(annotation.value) in ("Final", "ClassVar"):
        annotation = annotation.slice
    return _WRAPPER_KINDS.get(_last_name(annotation))


def _last_name(node: ast.expr | None) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.rpartition(".")[2]
    return getattr(node, "attr", None) or getattr(node, "id", "")


def _literal(value: Any) -> ast.expr:
    """The syntax node of a JSON value (tuples and sets too)."""
    if isinstance(value, (list, tuple)):
        return (ast.List if isinstance(value, list) else ast.Tuple)([_literal(v) for v in value], ast.Load())
    if isinstance(value, (set, frozenset)):
        return ast.Set([_literal(v) for v in value])
    if isinstance(value, dict):
        return ast.Dict([_literal(k) for k in value], [_literal(v) for v in value.values()])
    return ast.Constant(value)

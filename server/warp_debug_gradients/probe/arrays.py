"""Warp arrays as ranges of memory: which arrays an argument holds, their bytes, their scalars.

Nothing here emits an event: the hooks are bypassed (`quiet`), and no operation is recorded on a tape.
"""

from __future__ import annotations

import zlib
from contextlib import contextmanager
from typing import Any, Generator, Iterator

import numpy as np

MAX_STRUCT_DEPTH = 6  # nested wp.struct fields; deeper nesting is a cycle or not a struct

IS_QUIET = [False]  # True while the probe itself works with arrays: hooks must let such calls pass unseen
_array_classes: dict[type, bool] = {}


def _warp() -> Any:
    import warp

    return warp


def quiet_now() -> bool:
    """True while the probe itself works with arrays (hot paths look at IS_QUIET themselves)."""
    return IS_QUIET[0]


@contextmanager
def quiet() -> Generator[None, None, None]:
    """Use Warp without being seen by the hooks and without recording on the user's active tape."""
    runtime = _warp()._src.context.runtime
    tape, before = getattr(runtime, "tape", None), IS_QUIET[0]
    IS_QUIET[0] = True
    if tape is not None:
        runtime.tape = None
    try:
        yield
    finally:
        if tape is not None:
            runtime.tape = tape
        IS_QUIET[0] = before


def is_array(value: Any) -> bool:
    """A wp.array that owns or views memory (a type annotation such as `wp.array(dtype=float)` does not)."""
    kind = value.__class__
    known = _array_classes.get(kind)
    if known is None:
        known = any(c.__name__ == "array" and c.__module__.split(".")[0] == "warp" for c in kind.__mro__)
        _array_classes[kind] = known
    return known and getattr(value, "ptr", None) is not None


def struct_fields(value: Any) -> list[tuple[str, Any]] | None:
    """(name, value) of a wp.struct instance's fields, or None where `value` is not one."""
    described = getattr(value, "_cls", None)
    variables = getattr(described, "vars", None)
    if not isinstance(variables, dict):
        return None
    return [(name, getattr(value, name, None)) for name in variables]


def arrays_in(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """(path, array) for every array that a launch argument holds: itself, or the fields of a struct.

    `path` is '' for the argument itself and 'inner.q' for a nested field.
    """
    if is_array(value):
        yield path, value
        return
    if hasattr(value, "indices") and is_array(getattr(value, "data", None)):  # wp.indexedarray
        yield path, value.data
        return
    if depth >= MAX_STRUCT_DEPTH:
        return
    for name, field in struct_fields(value) or ():
        if field is not None and not isinstance(field, (int, float, bool)):
            yield from arrays_in(field, f"{path}.{name}" if path else name, depth + 1)


def extent(array: Any) -> tuple[int, int]:
    """First and one-past-last byte address that the array can touch (strides included)."""
    if array.ptr is None or 0 in array.shape:
        return (0, 0)
    item = element_bytes(array)
    low = high = 0
    for size, stride in zip(array.shape, array.strides, strict=False):
        reach = (size - 1) * stride
        low, high = low + min(reach, 0), high + max(reach, 0)
    return array.ptr + low, array.ptr + high + item


def element_bytes(array: Any) -> int:
    """Bytes of one element (a vec3 of float32 is 12)."""
    return _warp()._src.types.type_size_in_bytes(array.dtype)


def overlap(a: Any, b: Any) -> bool:
    """Whether two arrays can touch the same byte."""
    low_a, high_a = extent(a)
    low_b, high_b = extent(b)
    return low_a < high_b and low_b < high_a


def host(array: Any) -> np.ndarray:
    """The array as NumPy sees it: a live view on CPU, a copy from a GPU. Vector types add trailing axes."""
    with quiet():
        return array.numpy()


def float_parts(values: np.ndarray) -> list[np.ndarray]:
    """The floating-point values as plain arrays (views): the array itself, or the float fields of an array of structs."""
    if values.dtype.names is None:
        return [values] if values.dtype.kind == "f" else []
    return [part for name in values.dtype.names for part in float_parts(values[name])]


def float_fields(values: np.ndarray, prefix: str = "") -> list[tuple[str, int]]:
    """(name, scalars an element) of the float fields of an array of structs, in the order of `float_parts`; else none."""
    found = []
    for name in values.dtype.names or ():
        field = values[name]
        if field.dtype.names is not None:
            found += float_fields(field, f"{prefix}{name}.")
        elif field.dtype.kind == "f":
            found.append((prefix + name, int(np.prod(field.shape[values.ndim :], dtype=int))))
    return found


def scalars(array: Any) -> np.ndarray:
    """A copy of the array's scalars, flat, in C order, in their own dtype; of structs field by field. Shape (count,)."""
    values = host(array)
    if values.dtype.names is None:
        return np.array(values, copy=True).reshape(-1)
    parts = float_parts(values)
    return np.concatenate([part.reshape(-1) for part in parts]) if parts else np.zeros(0, np.float32)


def first_scalar(array: Any) -> float:
    """The value of a scalar loss; nan for an empty array."""
    values = np.asarray(host(array), dtype=float).reshape(-1)
    return float(values[0]) if values.size else float("nan")


def is_differentiable(array: Any) -> bool:
    """Whether the array holds floating-point scalars that can be perturbed."""
    try:
        return bool(float_parts(host(array)))
    except Exception:  # an exotic dtype that NumPy cannot show
        return False


def checksum(array: Any) -> int:
    """A fast hash of the array's present content (crc32: to notice a change, not to prove equality)."""
    view = host(array)
    return zlib.crc32(np.ascontiguousarray(view).view(np.uint8).reshape(-1).data) if view.size else 0


def overwrite(array: Any, values: np.ndarray) -> None:
    """Write flat scalars into the array's memory, unseen by hooks, tapes and Warp's own access flags."""
    with quiet():
        view = array.numpy()
        shaped = _shaped(np.asarray(values), view)
        if array.device.is_cpu:
            view[...] = shaped
            return
        import warp as wp

        source = wp.array(np.ascontiguousarray(shaped), dtype=array.dtype, device="cpu")
        grad, array._grad = array._grad, None  # wp.copy would copy gradients along
        try:
            wp.copy(array, source)
        finally:
            array._grad = grad


def _shaped(values: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Flat scalars (or whole structs) in the shape and dtype of an array; fields that are no floats stay as they are."""
    if like.dtype.names is None or values.dtype == like.dtype:
        return values.astype(like.dtype).reshape(like.shape)
    made, at = like.copy(), 0
    for part in float_parts(made):
        part[...] = values[at : at + part.size].reshape(part.shape)
        at += part.size
    return made


def describe_dtype(array: Any) -> str:
    """The dtype as a user writes it: 'float32', 'vec3f'."""
    return getattr(array.dtype, "__name__", str(array.dtype))

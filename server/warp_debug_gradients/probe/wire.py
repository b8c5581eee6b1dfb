"""JSON with what JSON lacks: non-finite numbers as strings, arrays as base64. Pure, shared by both processes."""

from __future__ import annotations

import base64
import json
import math
import os
import tempfile
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """A structure of JSON types: nan, inf and -inf become strings, NumPy scalars numbers, arrays lists."""
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        if math.isnan(value):
            return "nan"
        return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(v) for v in value]
    if value is None or isinstance(value, (str, int, bool)):
        return value
    return str(value)


def pack(value: Any) -> Any:
    """Like `plain`, but exact: arrays and non-finite floats come back as they were (see `unpack`)."""
    if isinstance(value, np.ndarray):
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode("ascii")
        return {"__array__": data, "dtype": str(value.dtype), "shape": list(value.shape)}
    if isinstance(value, np.generic):
        return pack(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return {"__float__": repr(value)}
    if isinstance(value, dict):
        return {str(k): pack(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [pack(v) for v in value]
    return value


def unpack(value: Any) -> Any:
    """The inverse of `pack` (dictionary keys that are whole numbers become ints again)."""
    if isinstance(value, dict):
        if "__array__" in value:
            return (
                np.frombuffer(base64.b64decode(value["__array__"]), dtype=value["dtype"]).reshape(value["shape"]).copy()
            )
        if "__float__" in value:
            return float(value["__float__"])
        return {(int(k) if k.isdigit() else k): unpack(v) for k, v in value.items()}
    if isinstance(value, list):
        return [unpack(v) for v in value]
    return value


def write(path: str, value: Any) -> None:
    """Write JSON so that a reader sees the whole file or none of it."""
    folder = os.path.dirname(os.path.abspath(path))
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".writing-", suffix=".json")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump(value, stream, allow_nan=False)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise

"""What every record of a run's JSON is made of. What is missing, or null, is empty: read with `.get`, `part`, `parts`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypedDict

from pydantic import JsonValue

Record = dict[str, Any]
Number = float | Literal["nan", "inf", "-inf"]
"""A number of the JSON (`schemas.as_float` reads it)."""


class Place(TypedDict, total=False):
    """A line of the user's code. via: their own line that called, where the place lies outside of the workspace."""

    file: str
    line: int
    via: Place
    off_tape: Place  # the caller that is on no tape, where the line itself is reached from a tape as well


def part(record: Mapping[str, Any] | None, name: str) -> Record:
    """A record inside a record."""
    return (record.get(name) if record else None) or {}


def parts(record: Mapping[str, Any] | None, name: str) -> list[Any]:
    """A list inside a record."""
    return (record.get(name) if record else None) or []


def read_json(path: Path) -> dict[str, Any]:
    """A file of the evidence; empty where there is none."""
    try:
        value: JsonValue = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}

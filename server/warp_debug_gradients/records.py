"""Parts of a run's JSON, with their types: what is missing, or null, is empty."""

from __future__ import annotations

from typing import Any

Record = dict[str, Any]


def part(record: Record | None, name: str) -> Record:
    """A record inside a record."""
    return (record.get(name) if record else None) or {}


def parts(record: Record | None, name: str) -> list[Any]:
    """A list inside a record."""
    return (record.get(name) if record else None) or []

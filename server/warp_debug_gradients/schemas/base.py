"""What every model of the contract is made of."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

Status = Literal["completed", "blocked", "timeout", "failed"]
Verdict = Literal["agree", "disagree", "inconclusive"]
Engine = Literal["auto", "fork", "rerun"]
Detail = Literal["concise", "full"]
Method = Literal["ledger", "knob", "sweep"]


def tag_nonfinite(value: Any) -> Any:
    """Non-finite floats as the strings "nan", "inf", "-inf": JSON has no other way to say them."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


Num = Annotated[float | Literal["nan", "inf", "-inf"], BeforeValidator(tag_nonfinite)]
"""A number that may be non-finite. Plain `float` fields turn NaN into null on the wire."""


def as_float(value: float | str | None) -> float:
    """The number behind a `Num` (NaN if there is none)."""
    return math.nan if value is None else float(value)


def invalid_fields(error: ValidationError) -> str:
    """What is wrong with a request, for people: one clause a field."""
    return "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())


class Model(BaseModel):
    """Base of everything that comes out. Unknown fields of the probe's JSON are ignored."""

    model_config = ConfigDict(extra="ignore")

"""What comes out: the parts that many results have."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from warp_debug_gradients.schemas.base import Model


class Location(Model):
    """A line of the user's code."""

    file: str = Field(description="Relative to the workspace")
    line: int | None = None


VIA = "The user's own line that called, where the place lies outside of the workspace"


class GradientRead(Model):
    """Where and how the user's code reads the gradient."""

    file: str | None = None
    line: int | None = None
    how: str | None = None
    when: str | None = Field(None, description="'after' backward, 'before' it (stale), or 'zeroed'")


class ScriptError(Model):
    """Why the user's program does not run: their own deepest line."""

    type: str
    message: str
    file: str | None = None
    line: int | None = None
    function: str | None = None
    source: str | None = None
    traceback: list[Location] = Field(default_factory=list[Location])
    kernel: str | None = None
    compiler_message: str | None = None
    missing_module: str | None = None
    advice: str | None = None
    named: Location | None = Field(default=None, description="Where the name stands that the compiler does not take")


class Cause(Model):
    """A cause that the evidence supports."""

    code: str
    confidence: Literal["proven", "likely", "possible"]
    file: str | None = None
    line: int | None = None
    function: str | None = None
    via: Location | None = Field(default=None, description=VIA)
    kernel: str | None = None
    variables: list[str] = Field(default_factory=list[str])
    evidence: list[str] = Field(default_factory=list[str])
    repair: str | None = None
    quick_check: str | None = None
    documentation: str | None = None


class NextCall(Model):
    """The call that should come next."""

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])
    why: str


class Interpreter(Model):
    """The Python that ran the user's script."""

    path: str
    why: str

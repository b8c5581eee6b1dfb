"""What comes out: the parts of a ledger, and of Warp's own tracker."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from warp_debug_gradients.schemas.base import Model, Num
from warp_debug_gradients.schemas.parts import VIA, Location


class Writer(Model):
    """Who wrote over a value."""

    what: str | None = Field(None, description="A kernel's name, or copy, zero_, fill_, assign, numpy, ...")
    file: str | None = None
    line: int | None = None
    via: Location | None = Field(default=None, description=VIA)
    off_tape: Location | None = Field(
        None, description="The caller that is on no tape, where the line itself is reached from a tape as well"
    )


class Reader(Model):
    """The launch whose adjoint needs the value."""

    kernel: str | None = None
    file: str | None = None
    line: int | None = None
    via: Location | None = Field(default=None, description=VIA)


class Change(Model):
    """How far the values moved between the read and its adjoint."""

    max_abs: Num | None = None
    relative: Num | None = None


class Overwrite(Model):
    """A value that was read on the tape and is another one when its adjoint reads it."""

    variable: str | None = None
    path: str | None = Field(None, description="What leads to it at the backward call, if that is another name")
    allocated: Location | None = None
    argument: str | None = Field(None, description="The reading kernel's argument")
    reader: Reader | None = None
    writer: Writer | None = None
    op: int | None = Field(None, description="Position on the tape of the first such read")
    ops: int | None = Field(None, description="Number of such reads at this line")
    change: Change | None = None
    harmful: bool | None = Field(None, description="False: the gradient does not depend on it. Null: not decided")
    how: str | None = Field(None, description="'clobbered', or 'in_kernel' (the kernel overwrites its own input)")
    races: bool = Field(
        False, description="The reading launch writes the array that its threads read at others' places"
    )


class TrackerWarning(Model):
    """A warning of Warp's own tracker, with the launch line that Warp does not give."""

    kind: Literal["launch", "copy", "in_kernel"]
    array: str | None = None
    allocated: Location | None = None
    argument: str | None = None
    kernel: str | None = None
    file: str | None = None
    line: int | None = None
    definition: Location | None = Field(None, description="Where the writing kernel is defined")
    count: int = 1
    stale: bool = Field(False, description="It stems from a read on a tape that was finished before (Warp < 1.17)")
    text: str | None = None


class Observation(Model):
    """Something seen on the tape that is often a mistake."""

    kind: str
    message: str
    file: str | None = None
    line: int | None = None
    variable: str | None = None


class WhatIfArray(Model):
    """The derivative with one array's clobbered reads restored."""

    variable: str | None = None
    restored: Num | None = None
    relative_error: Num | None = None


class WhatIf(Model):
    """The backward pass once more with the recorded values restored before each adjoint: proof before any edit."""

    finite_difference: Num | None = None
    as_is: Num | None = None
    restored: Num | None = None
    relative_error_as_is: Num | None = None
    relative_error_restored: Num | None = None
    arrays: list[WhatIfArray] = Field(default_factory=list[WhatIfArray])


class NamedArray(Model):
    """An array by the user's name."""

    variable: str | None = None
    allocated: Location | None = None


class Jump(Model):
    """The error that one launch line puts into the directional derivative."""

    kind: str = Field(description="'adjoint', 'lost' (no gradient buffer) or 'unrecorded' (a write not on the tape)")
    file: str | None = None
    line: int | None = None
    function: str | None = None
    via: Location | None = Field(default=None, description=VIA)
    kernel: str | None = None
    ops: int | None = Field(None, description="Number of tape ops at this line")
    first_op: int | None = None
    value: Num | None = None
    share: Num | None = Field(None, description="Part of |finite difference|")
    noise: Num | None = Field(None, description="Noise of `share`")
    significant: bool | None = None
    share_restored: Num | None = Field(None, description="The same with the clobbered reads restored")
    lost: list[NamedArray] = Field(default_factory=list[NamedArray])
    writers: list[Writer] = Field(default_factory=list[Writer])
    carried: Num | None = Field(None, description="Of an unrecorded write: the derivative that its values carry")
    replaced: Num | None = Field(None, description="... and what the adjoint hands on to the values it replaced")


class Term(Model):
    """A part of the error that no launch puts in."""

    variable: str | None = None
    allocated: Location | None = None
    value: Num | None = None
    share: Num | None = None
    noise: Num | None = None
    significant: bool | None = None


class BornNonFinite(Model):
    """The first op whose adjoint gave a non-finite value from finite ones."""

    op: int | None = None
    kernel: str | None = None
    file: str | None = None
    line: int | None = None
    variable: str | None = None
    elements: list[int] = Field(default_factory=list[int])
    inputs: dict[str, Any] = Field(default_factory=dict[str, Any])

"""What comes out: the parts of results."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from warp_debug_gradients.schemas.base import Model, Num, Verdict


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


class ArrayInfo(Model):
    """An array of the user's program."""

    name: str = Field(description="The user's own name for it")
    shape: list[int] = Field(default_factory=list[int])
    dtype: str | None = None
    scalars: int | None = Field(None, description="Number of scalar values in it")
    device: str | None = None
    allocated: Location | None = None
    gradient_read: GradientRead | None = None


class ObjectiveInfo(Model):
    """What `backward` was started from."""

    name: str
    dtype: str | None = None
    kind: str | None = Field(None, description="'loss' (a scalar) or 'seeded' (gradients given: the sum seed·output)")
    file: str | None = None
    line: int | None = None


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


class Horizon(Model):
    """How much of the optimizer iteration the check covers."""

    windows: int | None = Field(None, description="Number of backward calls in the iteration")
    ops: int | None = Field(None, description="Number of tape operations")
    full: bool = Field(description="True if the whole iteration is covered")
    start: Location | None = None
    end: Location | None = None


class Direction(Model):
    """Directional derivative: autodiff against finite differences, with the differences' own error."""

    label: str
    autodiff: Num | None = None
    finite_difference: Num | None = None
    error: Num | None = Field(None, description="Error estimate of the finite difference")
    relative_error: Num | None = None
    verdict: Verdict | None = None
    reason: str | None = None
    message: str | None = None
    step: Num | None = None
    evaluations: int | None = None


class Element(Model):
    """One component of the gradient."""

    index: int | list[int] | str | None = Field(None, description="Position among the parameter's scalars")
    component: int | list[int] | str | None = Field(None, description="In the user's terms, such as '[3].y'")
    autodiff: Num | None = None
    finite_difference: Num | None = None
    error: Num | None = None
    ratio: Num | None = Field(None, description="autodiff / finite_difference")
    verdict: Verdict | None = None


class Gradient(Model):
    """The consumed gradient (what the update really uses) against differences of the objective."""

    autodiff: Num | None = None
    finite_difference: Num | None = None
    error: Num | None = Field(None, description="Error estimate of the finite difference")
    relative_error: Num | None = None
    resolution: Num | None = Field(
        None,
        description="The smallest error, as a part of the gradient's size along a direction, that this check would have "
        "called a disagreement",
    )
    directions: list[Direction] = Field(default_factory=list[Direction])
    elements: list[Element] = Field(default_factory=list[Element])


class Consumed(Model):
    """The gradient that the update uses: which backward calls it comes from, and what became of it on the way."""

    when: str | None = Field(
        None,
        description="'after' backward, 'before' it (stale), or 'zeroed'; 'previous' or 'readings': the steps of the update "
        "follow the gradient of the iteration before, or the sum of all readings; 'left_behind': that of an array which the "
        "variable held before",
    )
    calls: list[int] = Field(default_factory=list[int], description="Backward calls whose gradient it holds")
    discarded: list[int] = Field(default_factory=list[int], description="Calls whose gradient was zeroed unread")
    edited: bool | None = Field(None, description="True if it was changed between backward and the read")
    norm: Num | None = None
    parts: int = Field(1, description="Reads whose sum it is, where the buffer was zeroed between them")
    read: GradientRead | None = None


class HorizonError(Model):
    """The derivative through the last ops of a tape alone, both ways."""

    ops: int
    autodiff: Num
    finite_difference: Num
    error: Num


class Signature(Model):
    """The pattern of the error."""

    kind: str = Field(description="none, zero, factor, sign, nonfinite, sparse, subtle or growing (with the horizon)")
    factor: Num | None = None
    message: str | None = None
    horizons: list[HorizonError] = Field(default_factory=list[HorizonError])


class Window(Model):
    """One backward call's own agreement, where an iteration has several."""

    backward_call: int | None = None
    verdict: Verdict | None = None
    autodiff: Num | None = None
    finite_difference: Num | None = None
    error: Num | None = None
    file: str | None = None
    line: int | None = None


class CheckSummary(Model):
    """One checked iteration and parameter."""

    iteration: int | None = None
    parameter: str | None = None
    objective: str | None = None
    verdict: Verdict
    reason: str | None = None
    message: str | None = None
    autodiff: Num | None = None
    finite_difference: Num | None = None
    error: Num | None = None
    relative_error: Num | None = None
    evaluations: int | None = None
    seconds_per_evaluation: float | None = None


class WarpGradcheck(Model):
    """What `wp.autograd.gradcheck` itself said about a `forward` target."""

    passed: bool | None = None
    message: str | None = None
    eps: Num | None = None
    vacuous: bool | None = Field(None, description="True if there was nothing for it to compare")


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


class KnobPoint(Model):
    """The gradient check at one value of a knob."""

    value: int | float
    autodiff: Num | None = None
    finite_difference: Num | None = None
    error: Num | None = None
    relative_error: Num | None = None
    verdict: Verdict | None = None
    reason: str | None = None
    objective: Num | None = None
    gradient_norm: Num | None = None
    ops: int | None = None
    iteration: int | None = None
    seconds: float | None = None
    message: str | None = None


class NextCall(Model):
    """The call that should come next."""

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])
    why: str


class Series(Model):
    """Numbers that the script printed under one name."""

    name: str
    first: Num
    last: Num
    count: int
    trend: Literal["decreasing", "stalled", "increasing", "nonfinite"]


class Knob(Model):
    """A module constant that looks like a size or a count: overriding it shrinks the run."""

    name: str = Field(description="What to put in `overrides`")
    value: int
    suggested: int
    file: str
    line: int
    bounds: str = Field(description="What it bounds")


class IterationHealth(Model):
    """One optimizer iteration of the traced run."""

    index: int
    losses: list[Num | None] = Field(
        default_factory=list[Num | None], description="One a backward call; null where it was seeded without a loss"
    )
    gradient_norm: Num | None = None
    ops: int | None = None
    tapes: int | None = None
    backward_calls: int | None = None
    discarded: list[int] = Field(default_factory=list[int], description="Calls whose gradient was zeroed unread")
    gradient_read: GradientRead | None = None


class NonFinite(Model):
    """The first non-finite value of the run."""

    iteration: int | None = None
    what: str | None = Field(None, description="'loss' or 'gradient'")
    name: str | None = None
    file: str | None = None
    line: int | None = None


class Structure(Model):
    """The shape of the computation: equal structure means that a shrunk run is still the same program."""

    launches_per_iteration: int | None = None
    kernels: dict[str, int] = Field(default_factory=dict[str, int])
    arrays: int | None = None


class Interpreter(Model):
    """The Python that ran the user's script."""

    path: str
    why: str

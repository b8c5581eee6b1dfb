"""What comes out: the parts of a gradient check."""

from __future__ import annotations

from pydantic import Field

from warp_debug_gradients.schemas.base import Model, Num, Verdict
from warp_debug_gradients.schemas.parts import GradientRead, Location


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
    size: Num | None = Field(
        None,
        description="What an error is compared with: |FD|, or the slope that a direction like it usually has, if larger",
    )
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
    size: Num | None = None
    evaluations: int | None = None
    seconds_per_evaluation: float | None = None


class WarpGradcheck(Model):
    """What `wp.autograd.gradcheck` itself said about a `forward` target."""

    passed: bool | None = None
    message: str | None = None
    eps: Num | None = None
    vacuous: bool | None = Field(None, description="True if there was nothing for it to compare")


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

"""What comes out of one adjoint alone: launches, functions with a custom gradient, and Warp's own per-kernel check."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from warp_debug_gradients.schemas.base import Model, Num
from warp_debug_gradients.schemas.parts import VIA, Location


class Digits(Model):
    """What one floating-point step of a launch's large input does to what it writes."""

    argument: str | None = None
    size: Num | None = Field(None, description="The largest of its values")
    step: Num | None = Field(None, description="The distance between neighbouring numbers there")
    result_size: Num | None = Field(None, description="RMS of what the launch writes")
    share: Num | None = Field(None, description="RMS change of the result for one step of each value, as a part of it")


class Isolated(Model):
    """The dot-product test of one launch, or of one function with a custom gradient, by itself."""

    what: Literal["launch", "function"]
    kernel: str | None = Field(None, description="The kernel's, or the function's, name")
    file: str | None = None
    line: int | None = None
    via: Location | None = Field(default=None, description=VIA)
    op: int | None = Field(None, description="Position on the tape")
    argument: str | None = Field(None, description="The input whose derivative decides")
    autodiff: Num | None = None
    finite_difference: Num | None = None
    error: Num | None = None
    verdict: Literal["right", "wrong", "undecided"]
    reason: str | None = Field(None, description="'backward_disabled', 'kink', 'surrogate' (piecewise constant), ...")
    restored: str | None = Field(
        None, description="The verdict with the launch's own inputs restored before its adjoint"
    )
    samples: int | None = Field(None, description="Sampled arguments of a function that count")
    wrong: int | None = Field(None, description="Those of them at which its gradient is wrong")
    blamed: bool = Field(False, description="Looked at because its line jumps")
    message: str | None = None
    digits: Digits | None = Field(
        None, description="Of the input that is far larger than what the launch writes, if any"
    )


class GradcheckTape(Model):
    """What `wp.autograd.gradcheck_tape` itself said about the tape, and what it looked at."""

    passed: bool | None = Field(None, description="Null: it gave no answer")
    message: str | None = None
    looked_at: str | None = None
    skipped: list[str] = Field(default_factory=list[str])

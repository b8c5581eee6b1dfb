"""What comes out: the parts of a watched run."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from warp_debug_gradients.schemas.base import Model, Num
from warp_debug_gradients.schemas.parts import GradientRead, Location


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

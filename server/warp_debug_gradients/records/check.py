"""evaluate.json: gradients against differences, one check an iteration and parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

from warp_debug_gradients.records.base import Number, Place
from warp_debug_gradients.records.trace import Array, Error, GradientRead, Objective

if TYPE_CHECKING:
    from typing_extensions import Required

Verdict = Literal["agree", "disagree", "inconclusive"]
HorizonRow = TypedDict(
    "HorizonRow", {"windows": int, "ops": int, "full": bool, "from": Place, "to": Place}, total=False
)  # 'from' is a keyword: no class can have it


class Numbers(TypedDict, total=False):
    """One derivative, both ways. error: of the finite difference, by itself."""

    autodiff: Number
    finite_difference: Number
    error: Number
    relative_error: Number
    verdict: Verdict


class DirectionRow(Numbers, total=False):
    """A directional derivative."""

    label: Required[str]
    reason: str
    step: Number
    rungs: list[dict[str, Any]]  # step, central, forward, backward, difference, by rising step


class Element(Numbers, total=False):
    """One component of the gradient."""

    index: Required[int]
    component: str
    ratio: Number


class Gradient(Numbers, total=False):
    """The numbers of the check: those of the direction that tells most, and all of them. resolution: see `agreement`."""

    resolution: Number
    size: Number
    directions: list[DirectionRow]
    elements: list[Element]


class WindowRow(Numbers, Place, total=False):
    """One backward call by itself: its own gradient against its own loss."""

    backward_call: Required[int]


class Consumed(TypedDict, total=False):
    """The gradient that the update uses. parts: reads whose sum it is."""

    when: str
    calls: list[int]
    discarded: list[int]
    edited: bool
    norm: Number
    parts: int
    read: GradientRead


class Signature(TypedDict, total=False):
    """How the error looks."""

    kind: str
    factor: Number
    message: str


class Repeats(TypedDict, total=False):
    """The objective evaluated again with nothing changed."""

    values: list[Number]
    reproducible: bool


class Start(TypedDict, total=False):
    """The point at which the derivative is taken."""

    digest: Required[str]
    rms: Number
    first: list[Number]


class Line(TypedDict, total=False):
    """The objective along the negative gradient: (rate, objective)."""

    points: Required[list[tuple[Number, Number | None]]]
    best: Number
    falls: bool
    limit: Number
    base: Number


class Update(TypedDict, total=False):
    """What the update really did. rate: the effective learning rate; cosine: of its step and the negative gradient."""

    rate: Number
    cosine: Number | None
    length: Number


class HostValue(TypedDict, total=False):
    """A number on the host beside a seed made by hand, and its derivative. factor: AD over it, where they are proportional."""

    name: Required[str]
    value: Number
    proportional: Required[bool]
    factor: Number | None
    autodiff: Number
    finite_difference: Number
    error: Number


class Reported(TypedDict, total=False):
    """A sum on the tape that the host reads, and of which backward begins at one summand. proportional: its derivatives to AD, over all parameters; None where that was not settled."""

    name: Required[str]
    summed: Place | None
    read: Place | None
    value: Number
    proportional: Required[bool | None]
    autodiff: Number
    finite_difference: Number
    error: Number


class Check(TypedDict, total=False):
    """One checked iteration and parameter.

    contributed: along the first direction, what the iteration's backward calls added to the gradient by themselves, without
    those that only repeat the one before. repeated: the places of these.
    """

    iteration: Required[int]
    parameter: Required[Array]
    objective: Objective
    horizon: HorizonRow
    verdict: Required[Verdict]
    reason: str
    message: str
    gradient: Gradient
    signature: Signature
    contributed: Number | None
    repeated: list[Place]
    windows: list[WindowRow]
    repeats: Repeats
    consumed: Consumed
    start: Start
    evaluations: int
    not_covered: list[str]
    line: Line
    update: Update
    by_hand: list[HostValue]
    digits: dict[str, Any]  # unless it disagrees: one step of the "parameter", of the "objective"; probe/digits.py
    reported: Reported


class Evaluation(TypedDict, total=False):
    """The whole file."""

    status: str
    error: Error
    engine: str
    checks: list[Check]
    gradcheck: dict[str, Any]

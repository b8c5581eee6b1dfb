"""ledger.json: where one backward call goes wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from warp_debug_gradients.records.base import Number, Place
from warp_debug_gradients.records.trace import Array, Error, Objective

if TYPE_CHECKING:
    from typing_extensions import Required


class Share(TypedDict, total=False):
    """A part of the directional derivative. share, noise: in parts of |finite difference|."""

    value: Number
    share: Number
    noise: Number
    significant: bool


class ReadRow(Place, total=False):
    """A look of the host at an array while the tape was recording."""

    variable: str | None
    how: str


class WriterRow(Place, total=False):
    """Who wrote: a kernel's name, or copy, zero_, assign, numpy, ..."""

    what: str
    read: ReadRow | None  # by which the values may have come to the host


class GivenNumber(TypedDict, total=False):
    """A number handed to a launch that follows the parameter: it is another one at +h than at -h."""

    argument: str
    plus: Number
    minus: Number
    read: ReadRow | None


class Launch(Place, total=False):
    """A launch line, or another operation of a tape."""

    function: str
    kernel: str


class NamedArray(TypedDict, total=False):
    """An array by the user's name."""

    variable: str
    allocated: Place
    off_tape: bool  # of a lost one: its values were computed while no tape was recording
    writer: WriterRow  # that filled it since the tape was entered, unrecorded


class TermRow(Share, NamedArray, total=False):
    """A part of the error that no launch puts in."""


class JumpRow(Share, Launch, total=False):
    """The error that one launch line puts in. kind: 'adjoint', 'lost' or 'unrecorded'."""

    kind: str
    ops: int
    first_op: int
    share_restored: Number  # the same with the clobbered reads restored
    lost: list[NamedArray]
    writers: list[WriterRow]
    carried: Number  # of an unrecorded write: the derivative that its values carry
    replaced: Number  # ... and what the adjoint hands on to the values it replaced
    host_values: list[GivenNumber]
    series: list[tuple[int, Number]]


class Stretch(Share, total=False):
    """Operations of a long tape that were not recorded singly."""

    first_op: Required[int]
    last_op: Required[int]


class Change(TypedDict, total=False):
    """How far values moved between the read and its adjoint."""

    max_abs: Number
    relative: Number


class OverwriteRow(NamedArray, total=False):
    """A value that was read on the tape and is another one when its adjoint reads it. how: 'clobbered', 'in_kernel'."""

    path: str  # the name that leads to the array at the backward call, where it is another
    argument: str
    reader: Launch  # whose adjoint needs the value
    writer: WriterRow
    op: int
    ops: int
    change: Change
    harmful: bool
    races: bool  # threads read what others write: its values depend on their order
    how: str


class ObservationRow(Place, total=False):
    """Something on the tape that is often a mistake."""

    kind: Required[str]
    message: str
    variable: str


class WhatIfRow(TypedDict, total=False):
    """The backward pass once more with the recorded values restored."""

    finite_difference: Number
    as_is: Number
    restored: Number
    relative_error_as_is: Number
    relative_error_restored: Number
    arrays: list[dict[str, Any]]


class Summation(TypedDict, total=False):
    """The backward pass once more with long sums of contributions in float64. arrays: whose gradients these are."""

    finite_difference: Number
    as_is: Number
    restored: Number
    relative_error_as_is: Number
    relative_error_restored: Number
    arrays: Required[list[NamedArray]]
    readers: Required[list[Launch]]


class NonFiniteRow(Launch, total=False):
    """The first operation whose adjoint makes values that are not finite from finite ones."""

    op: int
    variable: str
    elements: list[int]
    inputs: dict[str, Any]


class AloneRow(Launch, total=False):
    """One adjoint by itself. what: 'launch' or 'function' (a custom gradient); verdict: 'right', 'wrong', 'undecided'."""

    what: Required[str]
    op: int
    argument: str
    autodiff: Number
    finite_difference: Number
    error: Number
    verdict: Required[str]
    reason: str
    restored: str
    samples: int
    wrong: int
    blamed: bool
    digits: dict[str, Any] | None  # of what it reads and is far larger than what it writes: see probe/digits.py
    tangent_noise: Number  # how far the recorded runs put <adjoint, tangent> of its results off
    sum_noise: Number  # how far the round-off of its adjoint's sums does


class Ledger(TypedDict, total=False):
    """The book of one backward call."""

    iteration: int
    backward_call: int
    parameter: Array
    objective: Objective
    ops: int
    ops_recorded: int
    step: float
    finite_difference: Number
    autodiff: Number
    error: Number
    seed: Share
    stale: list[TermRow]
    truncated: list[TermRow]
    jumps: list[JumpRow]
    stretches: list[Stretch]
    book: list[tuple[int, Number]]
    flat: bool
    balance: Number
    nonfinite: NonFiniteRow
    overwrites: list[OverwriteRow]
    summation: Summation
    what_if: WhatIfRow
    isolated: list[AloneRow]
    gradcheck_tape: dict[str, Any]
    observations: list[ObservationRow]
    message: str
    meant: str  # put in by the server: that the overwritten reads are meant, in words


class Ledgers(TypedDict, total=False):
    """The whole file. reason: why no ledger could be kept."""

    status: str
    error: Error
    reason: str
    message: str
    ledgers: list[Ledger]

"""trace.json: what a run that only watched has seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from warp_debug_gradients.records.base import Number, Place

if TYPE_CHECKING:
    from typing_extensions import Required


class Error(TypedDict, total=False):
    """Why the program does not run: the user's own deepest line."""

    type: str
    message: str
    file: str
    line: int
    function: str
    missing_module: str
    advice: str


class GradientRead(Place, total=False):
    """Where and how the gradient is read. when: 'after' backward, 'before' it, or 'zeroed'."""

    how: str
    when: str


class Array(TypedDict, total=False):
    """A leaf of the tapes; of parameters `key` names it through all evaluations.

    orphan: its gradient is read, yet no tape reads the array.
    """

    name: Required[str]
    key: Required[str]
    shape: list[int]
    dtype: str
    scalars: int
    device: str
    allocated: Place
    gradient_read: GradientRead
    orphan: bool


class Objective(Place, total=False):
    """What backward was started from. kind: 'loss' or 'seeded', of a check also 'expression' (stated by the user).

    seed, outputs: where one value seeds all the outputs, this value, and how many scalars it seeds.
    """

    name: str
    dtype: str
    kind: str
    value: Number
    seed: Number
    outputs: int


class GradientEdit(Place, total=False):
    """Where the gradient was changed between two backward calls that add up. scale: by this factor, if by one."""

    how: str
    scale: Number | None


class Dropped(Place, total=False):
    """A backward call that is not handed the adjoint of the state behind its segment. norm: of that adjoint."""

    call: int
    variable: str
    norm: Number


class Iteration(TypedDict, total=False):
    """One optimizer iteration. losses: null for a backward call that was seeded by arrays."""

    index: Required[int]
    parameter_keys: list[str]
    backward_calls: list[int]
    ops: int
    tapes: int
    tape_emptied: Place
    launches: int
    losses: list[Number | None]
    gradient_norm: Number
    gradient_read: GradientRead
    gradient_edited: GradientEdit | None
    handed: list[Dropped]  # the other way round: what is seeded, and where it was made
    dropped: list[Dropped]
    discarded: list[int]
    plan: Required[Any]  # how to evaluate it again: the probe's own, handed back as it is


class NonFinite(Place, total=False):
    """The first value that is not finite. what: 'loss' or 'gradient'."""

    iteration: int
    what: str
    name: str


class Seconds(TypedDict, total=False):
    """Where the time went."""

    compile: float
    run: float
    total: float


class Race(TypedDict, total=False):
    """A launch onto its own input, where its threads read other elements than their own."""

    kernel: str
    file: str
    line: int


class Structure(TypedDict, total=False):
    """The shape of the computation."""

    launches_per_iteration: int
    kernels: dict[str, int]
    arrays: int
    races: list[Race]  # launches whose threads read what others of them may write


class Trace(TypedDict, total=False):
    """The whole file."""

    status: str
    error: Error
    warp_version: str
    python_version: str
    numpy_version: str
    device: str
    uses_cuda: bool
    uses_jax: bool
    unforkable: str  # why a forked child would not do what the program does
    unfollowed: list[str]  # captured graphs whose backward passes are not seen
    seconds: Seconds
    memory_bytes: int
    backward_calls: int
    parameters: list[Array]
    leaves: list[Array]
    objectives: list[Objective]
    iterations: list[Iteration]
    iterations_seen: int
    structure: Structure
    nonfinite: NonFinite
    loaded_files: list[str]
    notes: list[str]
    printed: dict[str, list[float]]  # numbers of the script's own output, added by the server
    gradcheck: dict[str, Any]  # Warp's own, of a `forward` target

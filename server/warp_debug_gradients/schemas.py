"""The contract: what goes in and what comes out, for the MCP tools and for `--json` alike.

Field descriptions are part of it: they become the tools' published schemas.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

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


class Model(BaseModel):
    """Base of everything that comes out. Unknown fields of the probe's JSON are ignored."""

    model_config = ConfigDict(extra="ignore")


# --- what goes in ----------------------------------------------------------------------------------------------


class Target(BaseModel):
    """Which program is measured, and how it is started."""

    model_config = ConfigDict(extra="forbid")

    script: str | None = Field(None, description="The script, relative to the workspace. It is run unedited.")
    module: str | None = Field(None, description="Instead of `script`: a module, as in `python -m pkg.train`.")
    forward: str | None = Field(
        None, description="Instead of `script`: a callable that computes the loss, such as 'model.py:rollout'."
    )
    inputs: str | None = Field(
        None, description="With `forward`: a callable that makes its arguments, such as 'model.py:make_inputs'."
    )
    args: list[str] = Field(default_factory=list, description="The script's own command line arguments.")
    cwd: str | None = Field(None, description="Folder to run in, relative to the workspace. Default: the workspace.")
    python: str | None = Field(
        None, description="The user's interpreter. Default: the workspace's .venv, else the active virtual environment."
    )
    device: str | None = Field(None, description="Warp device, such as 'cpu' or 'cuda:0'. Default: the script's own.")
    overrides: dict[str, bool | int | float | str] = Field(
        default_factory=dict,
        description="Module constants replaced in memory while the file is compiled, such as "
        '{"train.NUM_STEPS": 10} for NUM_STEPS in train.py. The file on disk is not changed.',
    )
    parameter: str | None = Field(
        None,
        description="The parameter by the user's variable name, such as 'model.weights'. Default: found by itself.",
    )
    objective: str | None = Field(
        None,
        description="Expression evaluated where `backward` is called, such as 'loss.numpy()[0]'. "
        "Default: the sum of the losses handed to `backward` in the iteration.",
    )
    env: list[str] = Field(
        default_factory=list,
        description="Names of environment variables to pass on to the script. Others that look like secrets, or that "
        "runs do not usually need, are withheld from it.",
    )
    timeout_s: float = Field(50.0, gt=0, le=3600, description="Wall-clock budget of the whole call, in seconds.")


class RunReproRequest(Target):
    """Input of `run_repro`."""


class GradcheckRequest(Target):
    """Input of `gradcheck_full_horizon`."""

    iteration: int | None = Field(
        None,
        ge=0,
        description="Optimizer iteration to check, counted from 0. Default: the first, the next, and a turn.",
    )
    engine: Engine = Field(
        "auto", description="How evaluations are made: 'fork' (fast, CPU), 'rerun' (a new process each), or 'auto'."
    )


class EnableTrackerRequest(Target):
    """Input of `enable_tracker`."""

    iteration: int | None = Field(
        None, ge=0, description="Optimizer iteration whose tape is watched, counted from 0. Default: the first."
    )


class BisectStepsRequest(Target):
    """Input of `bisect_steps`."""

    method: Method = Field(
        "ledger",
        description="'ledger': which launch line puts the error in. 'knob': the smallest value of `knob` at which "
        "autodiff and differences part. 'sweep': objective, gradient and error for each value of `knob`.",
    )
    iteration: int | None = Field(
        None,
        ge=0,
        description="Optimizer iteration to look into, counted from 0. Default: the first that disagrees.",
    )
    knob: str | None = Field(
        None, description="With 'knob' and 'sweep': a module constant such as 'train.NUM_STEPS' (run_repro lists them)."
    )
    values: list[int | float] = Field(
        default_factory=list, description="With `knob`: the values to try. Default: bisection below the present value."
    )


# --- what comes out: parts -------------------------------------------------------------------------------------


class Location(Model):
    """A line of the user's code."""

    file: str = Field(description="Relative to the workspace")
    line: int | None = None


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
    directions: list[Direction] = Field(default_factory=list[Direction])
    elements: list[Element] = Field(default_factory=list[Element])


class Consumed(Model):
    """The gradient that the update uses: which backward calls it comes from, and what became of it on the way."""

    when: str | None = Field(None, description="'after' backward, 'before' it (stale), or 'zeroed'")
    calls: list[int] = Field(default_factory=list[int], description="Backward calls whose gradient it holds")
    discarded: list[int] = Field(default_factory=list[int], description="Calls whose gradient was zeroed unread")
    edited: bool | None = Field(None, description="True if it was changed between backward and the read")
    norm: Num | None = None
    read: GradientRead | None = None


class Signature(Model):
    """The pattern of the error."""

    kind: str = Field(description="none, zero, factor, sign, nonfinite, sparse or subtle")
    factor: Num | None = None
    message: str | None = None


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


class Reader(Model):
    """The launch whose adjoint needs the value."""

    kernel: str | None = None
    file: str | None = None
    line: int | None = None


class Change(Model):
    """How far the values moved between the read and its adjoint."""

    max_abs: Num | None = None
    relative: Num | None = None


class Overwrite(Model):
    """A value that was read on the tape and is another one when its adjoint reads it."""

    variable: str | None = None
    allocated: Location | None = None
    argument: str | None = Field(None, description="The reading kernel's argument")
    reader: Reader | None = None
    writer: Writer | None = None
    op: int | None = Field(None, description="Position on the tape of the first such read")
    ops: int | None = Field(None, description="Number of such reads at this line")
    change: Change | None = None
    harmful: bool | None = Field(None, description="False: the gradient does not depend on it. Null: not decided")
    how: str | None = Field(None, description="'clobbered', or 'in_kernel' (the kernel overwrites its own input)")


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
    elements: list[Any] = Field(default_factory=list[Any])
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


# --- what comes out: results -----------------------------------------------------------------------------------


class Result(Model):
    """What every operation returns."""

    run_id: str = Field(description="Names the run and its evidence folder")
    operation: str
    status: Status = Field(description="'blocked': the user's program does not run, nothing else was measured")
    verdict: Verdict | None = Field(None, description="Null where nothing was judged")
    reason: str | None = Field(None, description="Stable code of why it is inconclusive, blocked or out of time")
    message: str = Field(description="The answer in one or two sentences")
    parameter: str | None = None
    objective: str | None = None
    iteration: int | None = None
    horizon: Horizon | None = None
    gradient: Gradient | None = None
    causes: list[Cause] = Field(default_factory=list[Cause])
    ruled_out: list[str] = Field(default_factory=list[str])
    blind_spots: list[str] = Field(default_factory=list[str], description="What this measurement did not cover")
    notes: list[str] = Field(default_factory=list[str])
    next: NextCall | None = None
    evidence: str = Field(description="Folder with everything behind this result, relative to the workspace")
    error: ScriptError | None = None
    warp_version: str | None = None
    device: str | None = None
    interpreter: Interpreter | None = None
    elapsed_s: float | None = None

    @property
    def exit_code(self) -> int:
        """0 nothing wrong, 1 a fault was measured, 3 blocked, 4 inconclusive, 5 out of time, 70 our failure."""
        if self.status != "completed":
            return {"blocked": 3, "timeout": 5}.get(self.status, 70)
        return {"disagree": 1, "inconclusive": 4}.get(self.verdict or "", 0)


class RunReproResult(Result):
    """Does it run, what was found, what can be shrunk."""

    seconds: dict[str, float] = Field(default_factory=dict[str, float], description="import, compile, run, total")
    parameters: list[ArrayInfo] = Field(default_factory=list[ArrayInfo], description="Arrays whose gradient is read")
    leaves: list[ArrayInfo] = Field(
        default_factory=list[ArrayInfo], description="Leaves with gradients that nobody reads: listed, not chosen"
    )
    objectives: list[ObjectiveInfo] = Field(default_factory=list[ObjectiveInfo])
    iterations: list[IterationHealth] = Field(default_factory=list[IterationHealth])
    iterations_seen: int = Field(0, description="All iterations of the traced run; `iterations` may list fewer")
    nonfinite: NonFinite | None = None
    metrics: list[Series] = Field(default_factory=list[Series], description="Numbers the script printed")
    shrink: list[Knob] = Field(default_factory=list[Knob])
    structure: Structure | None = None
    structure_compared: str | None = Field(
        None, description="With overrides: what changed against the latest run without them, or 'unknown'"
    )

    @property
    def exit_code(self) -> int:
        """As for every result; a non-finite value is a measured fault."""
        return 1 if self.status == "completed" and self.nonfinite else super().exit_code


class GradcheckResult(Result):
    """Is the consumed gradient right over the full horizon."""

    engine: str | None = None
    consumed: Consumed | None = None
    signature: Signature | None = None
    windows: list[Window] = Field(default_factory=list[Window])
    checks: list[CheckSummary] = Field(
        default_factory=list[CheckSummary], description="Every checked iteration and parameter"
    )
    warp_gradcheck: WarpGradcheck | None = None


UNKNOWN_WRITES = {"accumulator_reset", "host_round_trip", "unrecorded_operation"}


class EnableTrackerResult(Result):
    """Is anything overwritten that the backward pass needs: the content check and Warp's tracker, side by side."""

    overwrites: list[Overwrite] = Field(default_factory=list[Overwrite], description="Found by content, ours")
    warnings: list[TrackerWarning] = Field(default_factory=list[TrackerWarning], description="Warp's own tracker's")
    tracker_available: bool | None = Field(None, description="Null: the tracker's run did not finish")
    tracker_blind_spots: list[str] = Field(default_factory=list[str], description="What Warp's tracker cannot see")
    observations: list[Observation] = Field(default_factory=list[Observation])
    what_if: WhatIf | None = None

    @property
    def exit_code(self) -> int:
        """1: a harmful overwrite, or a write that the tape does not know; 4: the content check was not possible, or an overwrite is undecided."""
        if any(o.harmful for o in self.overwrites) or any(c.code in UNKNOWN_WRITES for c in self.causes):
            return 1
        undecided = self.reason is not None or any(o.harmful is None for o in self.overwrites)
        return 4 if self.status == "completed" and undecided else super().exit_code


class BisectStepsResult(Result):
    """Where along the tape, or at which value of a knob, the gradient goes wrong."""

    method: Method = "ledger"
    backward_call: int | None = None
    step: Num | None = None
    jumps: list[Jump] = Field(default_factory=list[Jump], description="Largest first; they sum to AD - FD")
    seed: Term | None = None
    stale: list[Term] = Field(default_factory=list[Term])
    truncated: list[Term] = Field(default_factory=list[Term])
    flat: bool | None = Field(None, description="No jump stands out of the noise")
    balance: Num | None = Field(None, description="AD - FD less all terms, as share: a check of the book itself")
    nonfinite: BornNonFinite | None = None
    overwrites: list[Overwrite] = Field(default_factory=list[Overwrite])
    what_if: WhatIf | None = None
    observations: list[Observation] = Field(default_factory=list[Observation])
    knob: str | None = None
    points: list[KnobPoint] = Field(default_factory=list[KnobPoint], description="Values of the knob tried, ascending")
    smallest_failing: int | float | None = None
    picture: str | None = Field(None, description="PNG, relative to the workspace")

    @property
    def faults(self) -> bool:
        """Whether something was measured to be wrong."""
        if self.verdict != "disagree":
            return False
        terms = [self.seed, *self.stale, *self.truncated, *self.jumps]
        found = any(t.significant for t in terms if t)
        return bool(found or self.nonfinite or self.causes or any(p.verdict == "disagree" for p in self.points))

    @property
    def exit_code(self) -> int:
        """1: a jump, a term or a failing value was measured; 4: nothing could be said."""
        if self.faults:
            return 1
        return 4 if self.status == "completed" and self.reason else super().exit_code

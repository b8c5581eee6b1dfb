"""What comes out: one result an operation."""

from __future__ import annotations

from pydantic import Field

from warp_debug_gradients.schemas.base import Method, Model, Num, Status, Verdict
from warp_debug_gradients.schemas.check import (
    CheckSummary,
    Consumed,
    Gradient,
    Horizon,
    KnobPoint,
    Signature,
    WarpGradcheck,
    Window,
)
from warp_debug_gradients.schemas.isolated import GradcheckTape, Isolated
from warp_debug_gradients.schemas.ledger import (
    BornNonFinite,
    Jump,
    Observation,
    Overwrite,
    Term,
    TrackerWarning,
    WhatIf,
)
from warp_debug_gradients.schemas.parts import Cause, Interpreter, NextCall, ScriptError
from warp_debug_gradients.schemas.run import (
    ArrayInfo,
    IterationHealth,
    Knob,
    NonFinite,
    ObjectiveInfo,
    Series,
    Structure,
)


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
    sampled: str | None = Field(None, description="How much of a long tape was looked at singly; null: all of it")

    @property
    def exit_code(self) -> int:
        """1: a harmful overwrite, or a write that the tape does not know; 4: the content check was not possible, or an overwrite is undecided."""
        if any(o.harmful for o in self.overwrites) or any(
            c.code in UNKNOWN_WRITES and c.confidence != "possible" for c in self.causes
        ):
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
    isolated: list[Isolated] = Field(default_factory=list[Isolated], description="One adjoint alone, wrong ones first")
    warp_gradcheck_tape: GradcheckTape | None = None
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

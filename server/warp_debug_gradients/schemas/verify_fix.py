"""verify_fix: what goes in and what comes out."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from warp_debug_gradients.schemas.base import Engine, Model, Num, Verdict
from warp_debug_gradients.schemas.check import Horizon
from warp_debug_gradients.schemas.ledger import Jump, Overwrite
from warp_debug_gradients.schemas.parts import Cause
from warp_debug_gradients.schemas.requests import Target
from warp_debug_gradients.schemas.results import Result

Outcome = Literal["fixed", "not_fixed", "improved_but_wrong", "masked", "regressed", "inconclusive"]
Health = Literal["decreasing", "stalled", "diverging", "nan"]


class VerifyFixRequest(Target):
    """Input of `verify_fix`. Target and settings are the baseline's; one that is given has to be the same."""

    baseline: str | None = Field(
        default=None, description="Run id of the check that disagreed. Default: the latest one in the evidence."
    )
    workflow: bool = Field(
        default=True,
        description="Also run the user's own command at full size, without overrides, and compare what it prints.",
    )
    iteration: int | None = Field(default=None, ge=0, description="As in the baseline's call; not needed.")
    engine: Engine = Field(default="auto", description="As in the baseline's call; not needed.")


class Baseline(Model):
    """The check that the repair is compared with."""

    run_id: str
    operation: str
    evidence: str
    warp_version: str | None = None
    interpreter: str | None = None


class Measured(Model):
    """One side of the comparison: the gradient check at the baseline's iteration."""

    verdict: Verdict | None = None
    reason: str | None = None
    parameter: str | None = None
    iteration: int | None = None
    direction: str | None = Field(
        default=None, description="Along which the following four were measured: the same for both sides"
    )
    autodiff: Num | None = None
    finite_difference: Num | None = None
    error: Num | None = Field(default=None, description="Error estimate of the finite difference")
    relative_error: Num | None = None
    ratio: Num | None = Field(default=None, description="autodiff / finite_difference")
    whole_error: Num | None = Field(default=None, description="|AD - FD| / |FD| over all directions together")
    objective: Num | None = Field(default=None, description="The objective's value there")
    horizon: Horizon | None = None
    signature: str | None = None


class ComparedDirection(Model):
    """One direction or element, the same one before and after."""

    label: str
    iteration: int
    before_autodiff: Num | None = None
    before_finite_difference: Num | None = None
    before_error: Num | None = None
    after_autodiff: Num | None = None
    after_finite_difference: Num | None = None
    after_error: Num | None = None


class ComparedCheck(Model):
    """One iteration and parameter, before and after."""

    iteration: int
    parameter: str
    before: Verdict | None = Field(default=None, description="Null: the baseline did not look there")
    after: Verdict | None = None
    after_reason: str | None = None
    same_point: bool | None = Field(
        default=None,
        description="Whether both stand at the same parameter values; else their numbers cannot be compared",
    )
    before_relative_error: Num | None = None
    after_relative_error: Num | None = None


class ForwardChange(Model):
    """Something of the program itself, other than its gradient, that is not as it was."""

    what: str = Field(description="objective, derivative, parameter, start, horizon, launches, kernels, training, ...")
    before: str
    after: str
    change: Num | None = Field(default=None, description="Relative change, where it is a number")
    masks: bool = Field(description="True: it makes an agreement now no proof that the fault is gone")
    message: str


class FileChange(Model):
    """A file of the user's that is not as it was, or was loaded in one run only."""

    file: str
    status: Literal["changed", "only_before", "only_now"]
    added: int = 0
    removed: int = 0


class LedgerSide(Model):
    """What the ledger says, before or after."""

    run_id: str | None = Field(default=None, description="Null: not measured")
    iteration: int | None = None
    jumps: list[Jump] = Field(default_factory=list[Jump], description="Those above their noise")
    harmful_overwrites: list[Overwrite] = Field(default_factory=list[Overwrite])
    harmless_overwrites: int | None = None
    message: str = ""


class RunHealth(Model):
    """A number that the program prints or hands to backward, over one run."""

    name: str
    health: Health
    first: Num
    last: Num
    best: Num | None = None
    count: int
    full_size: bool = Field(description="False: under the baseline's overrides")
    complete: bool = Field(description="False: the run was stopped when its time ran out")
    values: list[Num] = Field(default_factory=list[Num], description="At most 200, evenly spread")


class Workflow(Model):
    """The user's own command, before and after: is the complaint gone?"""

    command: str | None = None
    status: Literal["completed", "stopped", "failed", "skipped", "not_measured"]
    before: RunHealth | None = None
    after: RunHealth | None = None
    complaint: Literal["gone", "remains", "was_not_seen", "unknown"] = "unknown"
    message: str = ""


class VerifyFixResult(Result):
    """Is the fault gone: the baseline's check again, on the files as they are now."""

    outcome: Outcome = "inconclusive"
    baseline: Baseline | None = None
    before: Measured | None = None
    after: Measured | None = None
    checks: list[ComparedCheck] = Field(default_factory=list[ComparedCheck])
    directions: list[ComparedDirection] = Field(default_factory=list[ComparedDirection])
    changes: list[ForwardChange] = Field(default_factory=list[ForwardChange])
    files: list[FileChange] = Field(default_factory=list[FileChange])
    edited_elsewhere: list[str] = Field(
        default_factory=list[str],
        description="Edited since the baseline, but not loaded; looked for if no loaded file was",
    )
    diff: str = Field(
        default="", description="Unified diff of the loaded files since the baseline; whole in changes.diff"
    )
    ledger_before: LedgerSide | None = None
    ledger_after: LedgerSide | None = None
    causes_before: list[Cause] = Field(
        default_factory=list[Cause], description="What an earlier run found wrong with the baseline"
    )
    workflow: Workflow | None = None
    report: str | None = Field(default=None, description="The report as Markdown, relative to the workspace")
    report_html: str | None = Field(default=None, description="The same as one HTML file, with pictures")

    @property
    def exit_code(self) -> int:
        """0: fixed; 1: not; 4: inconclusive; 3 and 5 as for every result."""
        if self.status != "completed":
            return super().exit_code
        return {"fixed": 0, "inconclusive": 4}.get(self.outcome, 1)

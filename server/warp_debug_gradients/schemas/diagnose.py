"""What goes into and what comes out of the diagnosis in one call."""

from __future__ import annotations

from pydantic import Field

from warp_debug_gradients.schemas.base import Model
from warp_debug_gradients.schemas.check import CheckSummary, Consumed, Signature, Window
from warp_debug_gradients.schemas.requests import GradcheckRequest
from warp_debug_gradients.schemas.results import BisectStepsResult
from warp_debug_gradients.schemas.scan import PatternHit


class DiagnoseRequest(GradcheckRequest):
    """Input of `diagnose`."""


class Stage(Model):
    """One step of a diagnosis."""

    name: str = Field(description="run, check, locate, scan or settle")
    said: str
    seconds: float


class DiagnoseResult(BisectStepsResult):
    """The whole diagnosis: does it run, is the gradient right, where it goes wrong, and why."""

    stages: list[Stage] = Field(default_factory=list[Stage], description="What was done, in order, and what it said")
    leads: list[PatternHit] = Field(
        default_factory=list[PatternHit], description="Known patterns in the source; a lead is no verdict"
    )
    engine: str | None = None
    consumed: Consumed | None = None
    signature: Signature | None = None
    windows: list[Window] = Field(default_factory=list[Window])
    checks: list[CheckSummary] = Field(
        default_factory=list[CheckSummary], description="Every checked iteration and parameter"
    )

    @property
    def exit_code(self) -> int:
        """0 right, 1 a fault was measured, 3 blocked, 4 inconclusive, 5 out of time, 70 our failure."""
        if self.status != "completed":
            return {"blocked": 3, "timeout": 5}.get(self.status, 70)
        return {"disagree": 1, "agree": 0}.get(self.verdict or "", 4)

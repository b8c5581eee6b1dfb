"""What `doctor` says."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from warp_debug_gradients.schemas.base import Model


class Check(Model):
    """One thing that was looked at."""

    name: str
    status: Literal["ok", "warning", "fault"]
    found: str
    mend: str | None = Field(default=None, description="What to do about it")


class DoctorResult(Model):
    """All that was looked at. A fault is what keeps gradients from being measured."""

    checks: list[Check]

    @property
    def exit_code(self) -> int:
        """0: measurements can be made; 1: something must be mended first."""
        return 1 if any(check.status == "fault" for check in self.checks) else 0

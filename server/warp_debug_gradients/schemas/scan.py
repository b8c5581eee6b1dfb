"""scan_patterns: what goes in, what comes out."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from warp_debug_gradients.schemas.base import Model
from warp_debug_gradients.schemas.parts import Location
from warp_debug_gradients.schemas.results import Result


class ScanPatternsRequest(BaseModel):
    """Input of `scan_patterns`. Nothing is run: no interpreter, device or time is needed."""

    model_config = ConfigDict(extra="forbid")

    script: str | None = Field(None, description="The script, relative to the workspace. It is read, not run.")
    module: str | None = Field(None, description="Instead of `script`: a module, as in `python -m pkg.train`.")
    forward: str | None = Field(
        None, description="Instead of `script`: a callable that computes the loss, such as 'model.py:rollout'."
    )
    args: list[str] = Field(default_factory=list, description="Ignored here; handed on to the next call.")
    cwd: str | None = Field(None, description="Folder the program runs in, relative to the workspace.")


class RelatedPlace(Location):
    """A line that has to do with a hit."""

    what: str = Field("", description="What happens there, such as 'read here'")


class PatternHit(Location):
    """A place where a known pattern was recognised: a lead, never a verdict."""

    code: str = Field(description="The cause it would be")
    pattern: str
    likelihood: Literal["strong", "weak"]
    source: str = Field(description="The construct: the source text of the line")
    detail: str = Field("", description="What was recognised here")
    variable: str | None = None
    function: str | None = None
    why: str = Field(description="Why it can hurt")
    harmless: str = Field(description="When it does no harm")
    repair: str
    quick_check: str = Field(description="Section of references/quick-checks.md")
    related: list[RelatedPlace] = Field(default_factory=list[RelatedPlace])


class SkippedFile(Model):
    """A file that was not scanned."""

    file: str
    reason: str


class ScanPatternsResult(Result):
    """Known patterns in the files that the program imports. `verdict` is always null: nothing was measured."""

    hits: list[PatternHit] = Field(default_factory=list[PatternHit], description="Strong leads first")
    scanned: list[str] = Field(default_factory=list[str], description="Files that were read, relative to the workspace")
    skipped: list[SkippedFile] = Field(default_factory=list[SkippedFile])
    kernels: int = 0
    patterns: int = Field(0, description="How many patterns were looked for")

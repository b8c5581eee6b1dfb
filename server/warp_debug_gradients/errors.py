"""What can go wrong on our side of a measurement. A failing *user program* is a result, never one of these.

Every error has a stable `code` and a message that says what happened, where, and what to do next. The MCP
server turns them into tool errors, the command line into its exit codes (`exit_code`).
"""

from __future__ import annotations


class DebugGradientsError(Exception):
    """Base class: something we refuse to do, or could not do."""

    code = "internal"
    exit_code = 70

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class UsageError(DebugGradientsError):
    """The request is wrong: a name, a path or a value that cannot be used."""

    code = "usage"
    exit_code = 2


class WorkspaceError(UsageError):
    """A path is outside the workspace, or is not there."""

    code = "workspace"


class InterpreterError(UsageError):
    """The Python interpreter that should run the user's script cannot be started."""

    code = "interpreter"


class EngineUnavailable(DebugGradientsError):
    """The engine that was asked for cannot be used on this machine or in this version."""

    code = "engine_unavailable"


class ProbeFailed(DebugGradientsError):
    """The probe itself broke (not the user's script)."""

    code = "probe_failed"


class EvidenceLost(DebugGradientsError):
    """The evidence folder cannot be written any more."""

    code = "evidence_lost"


class Busy(DebugGradientsError):
    """Other calls in the same workspace took all the time that this one had."""

    code = "busy"

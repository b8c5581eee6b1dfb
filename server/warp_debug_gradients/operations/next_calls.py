"""Next calls that several operations suggest. Pure."""

from __future__ import annotations

from typing import Any

from warp_debug_gradients.schemas import NextCall

LONGEST_S = 3600.0


def with_more_time(tool: str, arguments: dict[str, Any], timeout_s: float) -> NextCall:
    """The same call, four times as long."""
    longer = {**arguments, "timeout_s": min(timeout_s * 4, LONGEST_S)}
    return NextCall(tool=tool, arguments=longer, why="The same with more time; or shrink the run (run_repro).")


def does_it_run(arguments: dict[str, Any]) -> NextCall:
    """After the program was blocked."""
    return NextCall(tool="run_repro", arguments=arguments, why="After the repair of the error: does it run now?")


def choose_another(arguments: dict[str, Any]) -> NextCall:
    """Where what was looked at decides nothing."""
    plain = {k: v for k, v in arguments.items() if k not in ("iteration", "engine", "objective", "parameter")}
    why = "Lists parameters, objectives and iterations to choose from."
    return NextCall(tool="run_repro", arguments=plain, why=why)

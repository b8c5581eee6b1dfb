"""The options of the commands, and how their texts become values."""

from __future__ import annotations

import ast
import json
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from warp_debug_gradients.errors import UsageError

if TYPE_CHECKING:
    from pydantic import JsonValue


class EngineName(str, Enum):
    """How evaluations are made."""

    auto = "auto"
    fork = "fork"
    rerun = "rerun"


class MethodName(str, Enum):
    """How the place is looked for."""

    ledger = "ledger"
    knob = "knob"
    sweep = "sweep"


class DetailName(str, Enum):
    """How long the lists in the text are."""

    concise = "concise"
    full = "full"


Script = Annotated[str | None, typer.Argument(help="The script, relative to the workspace; it is run unedited.")]
WorkspaceOption = Annotated[str | None, typer.Option(help="The project's folder. Default: the current folder.")]
Python = Annotated[
    str | None, typer.Option(help="Interpreter that has Warp. Default: WORKSPACE/.venv, else $VIRTUAL_ENV.")
]
Module = Annotated[str | None, typer.Option(help="Instead of SCRIPT: a module, as in python -m pkg.train.")]
Forward = Annotated[str | None, typer.Option(help="Instead of SCRIPT: a loss function, FILE.py:FUNCTION.")]
Inputs = Annotated[str | None, typer.Option(help="With --forward: makes its arguments, FILE.py:FUNCTION.")]
Cwd = Annotated[str | None, typer.Option(help="Folder to run in, relative to the workspace.")]
Device = Annotated[str | None, typer.Option(help="Warp device, such as cpu or cuda:0. Default: the script's own.")]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Replace a constant in memory: train.NUM_STEPS=10, train.Config.steps=10, or what __init__ sets on self. "
        "VALUE is a literal (10, 1e-3, true, None, [1, 2], 'text'), else a text as it stands. Repeatable.",
    ),
]
Parameter = Annotated[str | None, typer.Option(help="The trained array by its name in the script. Default: found.")]
Objective = Annotated[str | None, typer.Option(help="Expression where backward is called, such as 'loss.numpy()[0]'.")]
Iteration = Annotated[
    int | None, typer.Option(min=0, help="Optimizer iteration, from 0. Default: first, next, and a turn.")
]
EngineOption = Annotated[
    EngineName, typer.Option(help="fork (fast, CPU), rerun (a new process an evaluation), or auto.")
]
Env = Annotated[
    list[str] | None,
    typer.Option("--env", metavar="NAME", help="Pass this environment variable on to the script. Repeatable."),
]
TapeIteration = Annotated[int | None, typer.Option(min=0, help="Optimizer iteration, from 0. Default: the first.")]
BisectIteration = Annotated[
    int | None, typer.Option(min=0, help="Optimizer iteration, from 0. Default: the first that disagrees.")
]
MethodOption = Annotated[
    MethodName,
    typer.Option(help="ledger (which launch line), knob (smallest failing value), or sweep (a table of values)."),
]
Knob = Annotated[
    str | None, typer.Option(metavar="NAME", help="A module constant, such as train.NUM_STEPS (run-repro lists them).")
]
Values = Annotated[
    str | None,
    typer.Option(metavar="V,V,...", help="With --knob: the values to try, such as 2,4,8. Default: bisection."),
]
BaselineOption = Annotated[
    str | None,
    typer.Option(metavar="RUN_ID", help="The check that disagreed. Default: the latest one (`runs` lists them)."),
]
WorkflowOption = Annotated[
    bool, typer.Option(help="Also run the script at full size, without overrides, and compare what it prints.")
]
RunId = Annotated[str, typer.Argument(metavar="RUN_ID", help="The run's id (`runs` lists them).")]
Remove = Annotated[
    list[str] | None,
    typer.Option("--remove", metavar="RUN_ID", help="Delete this run's folder. Repeatable."),
]
Timeout = Annotated[float, typer.Option(help="Seconds for the whole command.")]
Json = Annotated[bool, typer.Option("--json", help="Print the whole result as one JSON object.")]
DetailOption = Annotated[DetailName, typer.Option(help="Length of the lists in the text.")]


class ClientName(str, Enum):
    """The clients whose configuration we can write."""

    claude = "claude"
    vscode = "vscode"
    codex = "codex"
    cursor = "cursor"


def parse_setting(text: str) -> tuple[str, JsonValue]:
    """`train.NUM_STEPS=10` -> ("train.NUM_STEPS", 10)."""
    name, equals, value = text.partition("=")
    if not equals or "." not in name:
        raise UsageError(f"--set {text!r} should read MODULE.NAME=VALUE, such as --set train.NUM_STEPS=10.")
    return name.strip(), parse_value(value)


def parse_value(text: str) -> JsonValue:
    """A literal as Python or JSON writes it (10, 1e-3, True, true, None, (0, -9.8, 0), 'true'); else the text itself."""
    for read in (ast.literal_eval, json.loads):
        with suppress(ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            return json.loads(json.dumps(read(text), allow_nan=False))  # as it goes to the probe: a tuple is a list
    return text


def parse_values(text: str) -> list[int | float]:
    """`2,4,8` -> [2, 4, 8]."""
    try:
        values: list[Any] = [ast.literal_eval(part.strip()) for part in text.split(",") if part.strip()]
    except (ValueError, SyntaxError):
        values = []
    if not values or not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values):
        raise UsageError(f"--values {text!r} should read V,V,..., numbers such as 2,4,8.")
    return values

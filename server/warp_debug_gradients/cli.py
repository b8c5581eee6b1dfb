"""The command line: the same operations as the MCP tools, for a person at a shell.

    warp-debug-gradients COMMAND SCRIPT [options] [-- script arguments]

Exit codes: 0 agree / nothing wrong; 1 a fault was measured; 2 usage; 3 the script does not run;
4 inconclusive; 5 time ran out; 70 our own failure; 130 interrupted.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import typer

from warp_debug_gradients import __version__
from warp_debug_gradients.cli_options import (
    BaselineOption,
    BisectIteration,
    ClientName,
    Cwd,
    DetailName,
    DetailOption,
    Device,
    EngineName,
    EngineOption,
    Env,
    Forward,
    Inputs,
    Iteration,
    Json,
    Knob,
    MethodName,
    MethodOption,
    Module,
    Objective,
    Parameter,
    Python,
    Remove,
    RunId,
    Script,
    Set,
    TapeIteration,
    Timeout,
    Values,
    WorkflowOption,
    WorkspaceOption,
    parse_setting,
    parse_values,
)
from warp_debug_gradients.errors import DebugGradientsError, UsageError

QUIET_S = 2.0  # no progress lines for what is over sooner

app = typer.Typer(
    name="warp-debug-gradients",
    help="Find out, with numbers, whether a script trained through NVIDIA Warp gets right gradients.\n\n"
    "The script is run unedited, by your own Python (the workspace's .venv, or --python).\n\n"
    "  warp-debug-gradients diagnose train.py\n\n"
    "  warp-debug-gradients run-repro train.py\n\n"
    "  warp-debug-gradients gradcheck-full-horizon train.py --parameter model.weights\n\n"
    "  warp-debug-gradients gradcheck-full-horizon train.py --set train.NUM_STEPS=10 -- --lr 0.1\n\n"
    "Exit codes: 0 agree / nothing wrong, 1 a fault was measured, 2 usage, 3 the script does not run, "
    "4 inconclusive, 5 time ran out, 70 our own failure.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.command("run-repro")
def run_repro(
    context: typer.Context,
    script: Script = None,
    workspace: WorkspaceOption = None,
    python: Python = None,
    module: Module = None,
    forward: Forward = None,
    inputs: Inputs = None,
    cwd: Cwd = None,
    device: Device = None,
    set_: Set = None,
    parameter: Parameter = None,
    objective: Objective = None,
    env: Env = None,
    timeout: Timeout = 50.0,
    json_: Json = False,
    detail: DetailOption = DetailName.concise,
) -> None:
    """Run the script once, watched: does it run, what is trained, losses, knobs that shrink it.

    Example: warp-debug-gradients run-repro train.py --set train.NUM_STEPS=10 -- --lr 0.1
    """
    from warp_debug_gradients.operations.run_repro import run_repro as operation
    from warp_debug_gradients.schemas import RunReproRequest

    _run(context, RunReproRequest, operation, locals())


@app.command("gradcheck-full-horizon")
def gradcheck_full_horizon(
    context: typer.Context,
    script: Script = None,
    workspace: WorkspaceOption = None,
    python: Python = None,
    module: Module = None,
    forward: Forward = None,
    inputs: Inputs = None,
    cwd: Cwd = None,
    device: Device = None,
    set_: Set = None,
    parameter: Parameter = None,
    objective: Objective = None,
    iteration: Iteration = None,
    engine: EngineOption = EngineName.auto,
    env: Env = None,
    timeout: Timeout = 50.0,
    json_: Json = False,
    detail: DetailOption = DetailName.concise,
) -> None:
    """Is the gradient that the optimizer consumes right, over the whole iteration? Exit code 1: it is wrong.

    Example: warp-debug-gradients gradcheck-full-horizon train.py --parameter states[0].q --iteration 1
    """
    from warp_debug_gradients.operations.gradcheck import gradcheck_full_horizon as operation
    from warp_debug_gradients.schemas import GradcheckRequest

    _run(context, GradcheckRequest, operation, locals())


@app.command("enable-tracker")
def enable_tracker(
    context: typer.Context,
    script: Script = None,
    workspace: WorkspaceOption = None,
    python: Python = None,
    module: Module = None,
    forward: Forward = None,
    inputs: Inputs = None,
    cwd: Cwd = None,
    device: Device = None,
    set_: Set = None,
    parameter: Parameter = None,
    objective: Objective = None,
    iteration: TapeIteration = None,
    env: Env = None,
    timeout: Timeout = 50.0,
    json_: Json = False,
    detail: DetailOption = DetailName.concise,
) -> None:
    """Is anything overwritten that the backward pass needs? Exit code 1: a harmful overwrite.

    Example: warp-debug-gradients enable-tracker train.py
    """
    from warp_debug_gradients.operations.enable_tracker import enable_tracker as operation
    from warp_debug_gradients.schemas import EnableTrackerRequest

    _run(context, EnableTrackerRequest, operation, locals())


@app.command("bisect-steps")
def bisect_steps(
    context: typer.Context,
    script: Script = None,
    workspace: WorkspaceOption = None,
    python: Python = None,
    module: Module = None,
    forward: Forward = None,
    inputs: Inputs = None,
    cwd: Cwd = None,
    device: Device = None,
    set_: Set = None,
    parameter: Parameter = None,
    objective: Objective = None,
    iteration: BisectIteration = None,
    method: MethodOption = MethodName.ledger,
    knob: Knob = None,
    values: Values = None,
    env: Env = None,
    timeout: Timeout = 50.0,
    json_: Json = False,
    detail: DetailOption = DetailName.concise,
) -> None:
    """Where does the gradient go wrong: the launch line, or the smallest value of a knob? Exit code 1: found.

    Example: warp-debug-gradients bisect-steps train.py --knob train.NUM_STEPS
    """
    from warp_debug_gradients.operations.bisect_steps import bisect_steps as operation
    from warp_debug_gradients.schemas import BisectStepsRequest

    _run(context, BisectStepsRequest, operation, locals())


@app.command("scan-patterns")
def scan_patterns(
    context: typer.Context,
    script: Script = None,
    workspace: WorkspaceOption = None,
    module: Module = None,
    forward: Forward = None,
    cwd: Cwd = None,
    json_: Json = False,
    detail: DetailOption = DetailName.concise,
) -> None:
    """Known patterns in the source of the script and what it imports; nothing is run. A hit is a lead: exit code 0.

    Example: warp-debug-gradients scan-patterns train.py
    """
    from warp_debug_gradients.operations.scan_patterns import scan_patterns as operation
    from warp_debug_gradients.schemas import ScanPatternsRequest

    _run(context, ScanPatternsRequest, operation, locals())


@app.command("doctor")
def doctor(workspace: WorkspaceOption = None, python: Python = None, json_: Json = False) -> None:
    """Can gradients be measured here, and if not, what is to be mended? Exit code 1: something must be.

    Example: warp-debug-gradients doctor --python .venv/bin/python
    """
    from warp_debug_gradients.operations.doctor import doctor as operation
    from warp_debug_gradients.render.doctor import render_doctor
    from warp_debug_gradients.workspace import Workspace

    result = asyncio.run(_interruptible(operation(Workspace.find(workspace), python)))
    if json_:
        print(result.model_dump_json(indent=1))
    else:
        _print(render_doctor(result), result.exit_code)
    raise typer.Exit(result.exit_code)


@app.command("verify-fix")
def verify_fix(
    context: typer.Context,
    script: Script = None,
    baseline: BaselineOption = None,
    workspace: WorkspaceOption = None,
    python: Python = None,
    module: Module = None,
    forward: Forward = None,
    inputs: Inputs = None,
    cwd: Cwd = None,
    device: Device = None,
    set_: Set = None,
    parameter: Parameter = None,
    objective: Objective = None,
    iteration: Iteration = None,
    engine: EngineOption = EngineName.auto,
    workflow: WorkflowOption = True,
    env: Env = None,
    timeout: Timeout = 50.0,
    json_: Json = False,
    detail: DetailOption = DetailName.concise,
) -> None:
    """Is the fault gone? The baseline's check again, on the files as they are now. Exit code 1: not fixed, or masked.

    Target and settings are the baseline's; what is given here has to be the same.

    Example: warp-debug-gradients verify-fix
    """
    from warp_debug_gradients.operations.verify_fix import verify_fix as operation
    from warp_debug_gradients.schemas import VerifyFixRequest

    _run(context, VerifyFixRequest, operation, locals())


@app.command("report")
def report(run_id: RunId, workspace: WorkspaceOption = None) -> None:
    """Write the report of a run again, from its recorded JSON alone: report.md and report.html in its folder.

    Example: warp-debug-gradients report 20261202T043528-verify-fix-1a2b3c
    """
    from warp_debug_gradients.report import write
    from warp_debug_gradients.runs import find_run
    from warp_debug_gradients.workspace import Workspace

    for path in write(find_run(Workspace.find(workspace), run_id)):
        print(path)


@app.command("runs")
def runs(workspace: WorkspaceOption = None, remove: Remove = None, json_: Json = False) -> None:
    """List the runs in the evidence folder, with their size. Nothing is removed unless it is named with --remove.

    Example: warp-debug-gradients runs --remove 20261202T043528-run-repro-1a2b3c
    """
    import json

    from warp_debug_gradients import runs as kept
    from warp_debug_gradients.workspace import Workspace

    place = Workspace.find(workspace)
    removed = kept.remove(place, remove or [])
    found = kept.all_runs(place)
    said = kept.offer(place)
    if json_:
        rows = [run.row() for run in found]
        print(json.dumps({"runs": rows, "removed": [run.run_id for run in removed], "offer": said}, indent=1))
        return
    for run in removed:
        print(f"removed {run.run_id} ({kept.megabytes(run.size)})")
    for run in found:
        row = run.row()
        what = row.get("outcome") or row.get("verdict") or row.get("reason") or row["status"]
        target = row.get("script") or row.get("module") or row.get("forward") or ""
        print(f"{run.run_id}  {kept.megabytes(run.size):>9}  {what:<18}  {target}")
    print(f"{len(found)} runs, {kept.megabytes(sum(run.size for run in found))}" + (f"\n{said}" if said else ""))


@app.command("install")
def install(
    client: Annotated[ClientName, typer.Option(help="Whose configuration is changed.")],
    project: Annotated[bool, typer.Option("--project", help="The project's configuration, not the user's.")] = False,
    workspace: WorkspaceOption = None,
    undo: Annotated[bool, typer.Option("--undo", help="Take the server out again.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Write without asking.")] = False,
) -> None:
    """Put the MCP server into a client's configuration; shows the change first, keeps what is there.

    Example: warp-debug-gradients install --client vscode --project
    """
    from warp_debug_gradients.operations.install import plan
    from warp_debug_gradients.workspace import Workspace

    change = plan(client.value, Workspace.find(workspace).root if project else None, undo=undo)
    if change.after == change.before:
        print(f"{change.path}: nothing to change.")
        return
    print(change.diff)
    if not yes and not (sys.stdin.isatty() and typer.confirm(f"Write {change.path}?")):
        raise UsageError("Nothing was written. Pass --yes to write it.")
    change.apply()
    print(f"{change.path} {'is gone: it held nothing else' if change.after is None else 'is written'}.")


@app.command("diagnose")
def diagnose(
    context: typer.Context,
    script: Script = None,
    workspace: WorkspaceOption = None,
    python: Python = None,
    module: Module = None,
    forward: Forward = None,
    inputs: Inputs = None,
    cwd: Cwd = None,
    device: Device = None,
    set_: Set = None,
    parameter: Parameter = None,
    objective: Objective = None,
    iteration: Iteration = None,
    engine: EngineOption = EngineName.auto,
    env: Env = None,
    timeout: Timeout = 100.0,
    json_: Json = False,
    detail: DetailOption = DetailName.concise,
) -> None:
    """All of it in one call: does it run, is the gradient right, which line is wrong, and why.

    Example: warp-debug-gradients diagnose train.py
    """
    from warp_debug_gradients.operations.diagnose import diagnose as operation
    from warp_debug_gradients.schemas import DiagnoseRequest

    _run(context, DiagnoseRequest, operation, locals())


@app.command("serve")
def serve(
    http: Annotated[bool, typer.Option("--http", help="Over streamable HTTP instead of stdio.")] = False,
    host: Annotated[str, typer.Option(help="With --http: the address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="With --http: the port.")] = 8642,
    name: Annotated[
        list[str] | None, typer.Option(metavar="HOST", help="With --http: another name clients use. Repeatable.")
    ] = None,
    python: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH", help="An interpreter outside the workspace (or a folder of them) that calls may name."
        ),
    ] = None,
) -> None:
    """Serve the same operations as MCP tools, over stdio (default) or HTTP.

    Elsewhere than on this machine (--host) it needs WARP_DEBUG_GRADIENTS_TOKEN, which clients send as bearer token.
    """
    from warp_debug_gradients.workspace import PYTHONS_VARIABLE, Workspace

    named = [*(python or []), *filter(None, [os.environ.get(PYTHONS_VARIABLE)])]
    os.environ[PYTHONS_VARIABLE] = os.pathsep.join(named)
    print(f"Workspace: {Workspace.find().root}", file=sys.stderr, flush=True)
    if http:
        from warp_debug_gradients.http_server import serve_http

        serve_http(host, port, name or [])
        return
    import gc

    gc.disable()  # what the SDK's import makes stays: to look through it for garbage takes a tenth of the start
    from warp_debug_gradients.app import serve as serve_stdio

    gc.enable()

    serve_stdio()


def _run(context: typer.Context, model: Any, operation: Callable[..., Awaitable[Any]], options: dict[str, Any]) -> None:
    """Options to a request, the request to a result, the result to text and exit code."""
    from pydantic import ValidationError

    from warp_debug_gradients.operations.perform import perform
    from warp_debug_gradients.render import render
    from warp_debug_gradients.schemas import invalid_fields
    from warp_debug_gradients.workspace import Workspace

    settings = {k: v for k, v in options.items() if k in model.model_fields and v is not None}
    settings["args"] = list(context.obj or [])
    if "timeout" in options:  # what runs nothing takes neither time nor settings
        settings["timeout_s"] = options["timeout"]
        given: list[str] = options["set_"] or []
        settings["overrides"] = dict(map(parse_setting, given))
    for name in ("engine", "method"):
        if name in options:
            settings[name] = options[name].value
    if options.get("values"):
        settings["values"] = parse_values(options["values"])
    try:
        request = model(**settings)
    except ValidationError as error:
        raise UsageError(invalid_fields(error)) from error
    workspace = Workspace.find(options["workspace"])
    result = asyncio.run(_interruptible(perform(operation, request, workspace, _show_progress)))
    if options["json_"]:
        print(result.model_dump_json(indent=1))
    else:
        _print(render(result, options["detail"].value), result.exit_code)
    raise typer.Exit(result.exit_code)


def _print(text: str, exit_code: int) -> None:
    """The text; on a terminal with its first line in colour. The words are the same."""
    if not sys.stdout.isatty():
        print(text)
        return
    from rich.console import Console

    first, _, rest = text.partition("\n")
    console = Console(highlight=False, soft_wrap=True)
    console.print(first, style={0: "bold green", 1: "bold red"}.get(exit_code, "bold yellow"), markup=False)
    console.print(rest, markup=False)


async def _interruptible(work: Awaitable[Any]) -> Any:
    """SIGTERM ends like Ctrl-C: the task is cancelled, which ends the probe, and only then we go."""
    task = asyncio.ensure_future(work)
    if sys.platform != "win32":
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task


async def _show_progress(progress: Any) -> None:
    if progress.elapsed_s > QUIET_S:
        message = f": {progress.message}" if progress.message else ""
        print(f"[{progress.elapsed_s:5.1f} s] {progress.stage}{message}", file=sys.stderr, flush=True)


def main(argv: list[str] | None = None) -> None:
    """Entry point. Everything after the first `--` belongs to the user's script."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    split = arguments.index("--") if "--" in arguments else len(arguments)
    if arguments == ["--version"]:
        print(__version__)
        return
    try:
        app(args=arguments[:split], obj=arguments[split + 1 :], prog_name="warp-debug-gradients")
    except DebugGradientsError as error:
        print(f"Error [{error.code}]: {error.message}", file=sys.stderr)
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, asyncio.CancelledError):
        print("Interrupted; the script's process has been ended.", file=sys.stderr)
        sys.exit(130)
    except Exception:
        traceback.print_exc()
        print("This is a failure of warp-debug-gradients, not of your script. Please report it.", file=sys.stderr)
        sys.exit(70)

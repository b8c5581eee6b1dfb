"""A request as the shell command that repeats it: for `rerun.sh`, and for people."""

from __future__ import annotations

from warp_debug_gradients.schemas import Target
from warp_debug_gradients.workspace import Workspace

PLAIN = (
    "module", "forward", "inputs", "cwd", "device", "parameter", "objective", "iteration", "engine", "method", "knob",
    "baseline",
)  # fmt: skip


def command_line(operation: str, request: Target, workspace: Workspace, python: str) -> list[str]:
    """The arguments after `warp-debug-gradients`, with every setting spelled out."""
    command = [operation.replace("_", "-")]
    if request.script:
        command.append(request.script)
    command += ["--workspace", str(workspace.root), "--python", python]
    for name in PLAIN:
        value = getattr(request, name, None)
        if value is not None:
            command += [f"--{name}", str(value)]
    for name, value in request.overrides.items():
        command += ["--set", f"{name}={value!r}"]
    if getattr(request, "workflow", True) is False:
        command += ["--no-workflow"]
    if values := getattr(request, "values", None):
        command += ["--values", ",".join(map(repr, values))]
    for name in request.env:
        command += ["--env", name]
    command += ["--timeout", f"{request.timeout_s:g}"]
    return [*command, "--", *request.args] if request.args else command

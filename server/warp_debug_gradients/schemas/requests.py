"""What goes in: one model an operation."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from warp_debug_gradients.schemas.base import Engine, Method


class Target(BaseModel):
    """Which program is measured, and how it is started."""

    model_config = ConfigDict(extra="forbid")

    script: str | None = Field(None, description="Path in the workspace; it is run unedited.")
    module: str | None = Field(None, description="Instead of script, as in `python -m pkg.train`.")
    forward: str | None = Field(None, description="Instead of script: a loss function, 'model.py:rollout'.")
    inputs: str | None = Field(None, description="With forward: makes its arguments, 'model.py:make_inputs'.")
    args: list[str] = Field(default_factory=list, description="The script's own arguments.")
    cwd: str | None = Field(None, description="Folder to run in. Default: the workspace.")
    python: str | None = Field(None, description="Interpreter. Default: the workspace's .venv, else VIRTUAL_ENV.")
    device: str | None = Field(None, description="Such as 'cpu'. Default: the script's own.")
    overrides: dict[str, Any] = Field(
        default_factory=dict[str, Any], description='Module constants, replaced in memory: {"train.NUM_STEPS": 10}.'
    )
    parameter: str | None = Field(None, description="The trained array's name, 'model.weights'. Default: found.")
    objective: str | None = Field(
        None,
        description="Expression evaluated where backward is called, 'loss.numpy()[0]'. Default: the sum of the losses "
        "handed to backward.",
    )
    env: list[str] = Field(default_factory=list, description="Names of environment variables to pass on.")
    timeout_s: float = Field(50.0, gt=0, le=3600, description="Seconds for the whole call.")


class RunReproRequest(Target):
    """Input of `run_repro`."""


class GradcheckRequest(Target):
    """Input of `gradcheck_full_horizon`."""

    iteration: int | None = Field(
        None,
        ge=0,
        description="Optimizer iteration, from 0. Default: the first, the next, and a turn.",
    )
    engine: Engine = Field("auto", description="'fork' (fast, CPU), 'rerun' (a new process an evaluation), or 'auto'.")


class EnableTrackerRequest(Target):
    """Input of `enable_tracker`."""

    iteration: int | None = Field(
        None, ge=0, description="Optimizer iteration whose tape is watched, counted from 0. Default: the first."
    )


class BisectStepsRequest(Target):
    """Input of `bisect_steps`."""

    method: Method = Field(
        "ledger",
        description="'ledger': which launch line puts the error in. 'knob': the smallest value of `knob` at which "
        "autodiff and differences part. 'sweep': objective, gradient and error for each value of `knob`.",
    )
    iteration: int | None = Field(
        None,
        ge=0,
        description="Optimizer iteration to look into, counted from 0. Default: the first that disagrees.",
    )
    knob: str | None = Field(
        None, description="With 'knob' and 'sweep': a module constant such as 'train.NUM_STEPS' (run_repro lists them)."
    )
    values: list[int | float] = Field(
        default_factory=list[int | float],
        description="With `knob`: the values to try. Default: bisection below the present value.",
    )

"""The tools: what each is called and says of itself, what goes in, what comes out, and which operation does it.

Imported with the first `tools/list` or call, not at the start: the schemas of the contract take time to build.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from pydantic import BaseModel

from warp_debug_gradients.operations.perform import Operation
from warp_debug_gradients.schemas import (
    BisectStepsRequest,
    BisectStepsResult,
    DiagnoseRequest,
    DiagnoseResult,
    EnableTrackerRequest,
    EnableTrackerResult,
    GradcheckRequest,
    GradcheckResult,
    Result,
    RunReproRequest,
    RunReproResult,
    ScanPatternsRequest,
    ScanPatternsResult,
    VerifyFixRequest,
    VerifyFixResult,
)


@dataclass(frozen=True)
class Tool:
    """One tool. Its arguments are the fields of `request`, and `detail`."""

    name: str
    title: str
    description: str
    request: type[BaseModel]
    result: type[Result]
    module: str  # of operations; the function in it is called as the tool is

    def operation(self) -> Operation:
        """What does the work. Imported when it is needed."""
        module: Any = import_module(f"warp_debug_gradients.operations.{self.module}")
        return getattr(module, self.name)


RUN_REPRO = inspect.cleandoc("""
    Run the user's Warp training script once, unedited and watched, and report what is in it: whether it runs (if not:
    the user's own failing line and what to do), Warp version, device, where the time goes, trained parameters,
    objective, loss and gradient norm of each optimizer iteration with the first non-finite value, printed numbers, and
    the constants that would shrink a slow run (apply them with `overrides`). Measures no derivative.
    A program that fails is a normal result with status "blocked". Next: gradcheck_full_horizon.
""")

DIAGNOSE = inspect.cleandoc("""
    The whole diagnosis in one call: does the program run, is its gradient right over the full horizon, where does
    it go wrong, and why. Use it first when training through Warp diverges, stalls, fits badly or gives NaN.
    Returns agree | disagree | inconclusive, AD and FD with error estimates, and ranked causes: code, file and line,
    variables, evidence with numbers, repair. With a right gradient it says so, and what the numbers suggest instead
    (the learning rate against the objective along the gradient). Next: repair the first cause's line, then verify_fix.
""")

GRADCHECK = inspect.cleandoc("""
    Is the gradient that the optimizer consumes right, over the whole optimizer iteration? Compares it with finite
    differences of the objective, made by the user's own unedited program; parameter, objective and iterations are found.
    Use it whenever training through Warp misbehaves, before looking for a cause.
    Returns agree | disagree | inconclusive (with a measured reason), AD and FD with error estimates, the error's
    signature, what is ruled out and what was not covered. agree: the gradients are right, look elsewhere.
    Out of time: status "timeout"; shrink the run with `overrides` or raise timeout_s. Next: bisect_steps.
""")

ENABLE_TRACKER = inspect.cleandoc("""
    Is anything overwritten that the backward pass needs? Two instruments: the content of all that the tape read against
    what its adjoints read later, whoever wrote (kernels, copies, zero_/fill_, NumPy, struct fields, aliases, after
    the tape); and Warp's own tracker, with the launch lines that Warp does not give.
    Use it when buffers are reused, or after a disagreement. A clean answer does not make the gradient right.
    Returns victim, reader, writer with lines, harmful or harmless, and a what-if: the derivative with the recorded
    values restored, a proof before any edit. verdict stays null. Next: repair, then verify_fix; or bisect_steps.
""")

BISECT_STEPS = inspect.cleandoc("""
    Where does a wrong gradient go wrong: launch line, cause with evidence, repair. Use it after a disagreement.
    method="ledger" (default): follows one derivative through the tape op by op; what each launch line adds or loses,
    each blamed kernel's adjoint by itself, wrong seeds, stale gradients, truncated history, the birth of
    non-finite values, overwritten reads and a what-if; a picture. Needs device="cpu".
    method="knob", knob="train.NUM_STEPS": the smallest value at which autodiff and differences part.
    method="sweep": objective, gradient norm and error for each value (shows a solver that has not settled).
    Next: repair the line of the first cause, then verify_fix.
""")

SCAN_PATTERNS = inspect.cleandoc("""
    Read the user's source for known patterns that can break a Warp gradient. Nothing is run.

    Reads the script and the workspace files that it imports; works where the program does not run or Warp is not
    installed, in well under a second. Use it beside gradcheck_full_horizon, to know where to look first, or when the
    program cannot be run. Not for judging the gradient: a hit is a lead, never a verdict, and no hit proves nothing.
    Returns hits, strong leads first: file and line, the construct, the cause it would be, why it can hurt, when it is
    harmless, the repair, the section of quick-checks. verdict stays null. Next: gradcheck_full_horizon.
""")

VERIFY_FIX = inspect.cleandoc("""
    Measure whether an edit repaired a wrong gradient: the baseline's check once more, on the files as they are now.

    Use it after every edit that is meant to repair what gradcheck_full_horizon or diagnose found. Without arguments it
    takes the latest check that disagreed, and repeats it exactly: same parameter, objective, iterations, directions,
    elements, overrides; and a later iteration. Arguments that differ from the baseline's are refused.
    Returns outcome fixed | not_fixed | improved_but_wrong (another fault: where) | masked (it agrees now, but the
    objective, horizon, parameter or forward values changed: what, and by how much) | regressed | inconclusive; AD and
    FD before and after; the ledger; the diff of the loaded files; whether the script's own loss now falls; a report.
    Only "fixed" means repaired. It needs a baseline: run gradcheck_full_horizon on the broken program first.
""")

_ALL = (
    Tool("run_repro", "Run the script, watched", RUN_REPRO, RunReproRequest, RunReproResult, "run_repro"),
    Tool("diagnose", "Diagnose a program", DIAGNOSE, DiagnoseRequest, DiagnoseResult, "diagnose"),
    Tool(
        "gradcheck_full_horizon",
        "Check the gradient over the full horizon",
        GRADCHECK,
        GradcheckRequest,
        GradcheckResult,
        "gradcheck",
    ),
    Tool(
        "enable_tracker",
        "Find overwritten values",
        ENABLE_TRACKER,
        EnableTrackerRequest,
        EnableTrackerResult,
        "enable_tracker",
    ),
    Tool(
        "bisect_steps",
        "Find where the gradient goes wrong",
        BISECT_STEPS,
        BisectStepsRequest,
        BisectStepsResult,
        "bisect_steps",
    ),
    Tool(
        "scan_patterns",
        "Scan the source for known patterns",
        SCAN_PATTERNS,
        ScanPatternsRequest,
        ScanPatternsResult,
        "scan_patterns",
    ),
    Tool("verify_fix", "Verify a repair", VERIFY_FIX, VerifyFixRequest, VerifyFixResult, "verify_fix"),
)

TOOLS = {tool.name: tool for tool in _ALL}

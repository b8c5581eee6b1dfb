"""A callable of the user's as the program: one forward pass, one backward pass, and Warp's own opinion.

The forward pass is called as `wp.autograd.gradcheck` calls it: `forward(*inputs)` returns its outputs.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import os
import re
import time
from typing import Any, Callable

import numpy as np

from . import forking, quarantine
from .arrays import is_array, quiet
from .names import reachable_from

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # a terminal's; the answer is no terminal
SEED = 20261202  # of the vector that a non-scalar output is contracted with


def run(
    forward: Callable[..., Any],
    make_inputs: Callable[..., Any],
    name_arguments: Callable[[dict[str, Any]], None] = lambda named: None,
) -> list[Any]:
    """forward(*inputs) on a tape, backward, and a read of every input's gradient; returns the inputs.

    name_arguments: is told the inputs by the names that `forward` has for them, before anything runs.
    """
    import warp as wp

    made = make_inputs()
    inputs = list(made) if isinstance(made, (list, tuple)) else [made]
    arguments = _named(forward, inputs)
    name_arguments(arguments)
    with wp.Tape() as tape:
        result = forward(*inputs)
    outputs = [
        a for a in (result if isinstance(result, (list, tuple)) else [result]) if is_array(a) and a.requires_grad
    ]
    if not outputs:
        raise TypeError(
            "the forward callable returned no wp.array with requires_grad=True; return the loss (or the outputs) as gradcheck expects"
        )
    if len(outputs) == 1 and np.asarray(outputs[0].numpy()).size == 1:
        tape.backward(outputs[0])
    else:
        rng = np.random.default_rng(SEED)
        seeds = {}
        for output in outputs:
            values = output.numpy()
            seeds[output] = wp.array(
                rng.standard_normal(values.shape).astype(values.dtype), dtype=output.dtype, device=output.device
            )
        tape.backward(grads=seeds)
    for _, array in reachable_from(arguments.items()):
        if array.requires_grad:
            array.grad.numpy()
    return inputs


def _named(forward: Callable[..., Any], inputs: list[Any]) -> dict[str, Any]:
    """The inputs by the names of the callable's arguments; numbered where it does not say them."""
    try:
        return dict(inspect.signature(forward).bind(*inputs).arguments)
    except (TypeError, ValueError):  # the call itself says what is wrong, if anything is
        return {"inputs": inputs}


def warp_gradcheck(forward: Callable[..., Any], inputs: list[Any], limit_s: float) -> dict[str, Any]:
    """What `wp.autograd.gradcheck` says at its defaults, in a forked child (it changes its inputs).

    vacuous: nothing was there to check (no input with requires_grad), where Warp answers True.
    """
    try:
        checker = getattr(importlib.import_module("warp.autograd"), "gradcheck", None)
    except ImportError:
        checker = None
    vacuous = not any(is_array(a) and a.requires_grad for a in inputs)
    base = {"eps": None, "vacuous": vacuous, "passed": None, "message": ""}
    if checker is None or not hasattr(os, "fork"):
        return {**base, "message": "wp.autograd.gradcheck is not available here"}
    default = inspect.signature(checker).parameters.get("eps")
    base["eps"] = default.default if default is not None else None
    _load_kernels_of_gradcheck(inputs)
    read_end, write_end = os.pipe()
    pid = forking.fork()
    if pid == 0:
        os.close(read_end)
        forking.send(write_end, _ask(checker, forward, inputs, write_end))
    os.close(write_end)
    reply, problem = forking.receive(read_end, pid, time.perf_counter() + limit_s)
    if problem is not None:
        ended = "did not answer in time" if problem == "time" else "ended the process"
        return {**base, "message": f"wp.autograd.gradcheck {ended}"}
    passed, message = reply
    return {**base, "passed": passed, "message": message}


def _load_kernels_of_gradcheck(inputs: list[Any]) -> None:
    """Compile Warp's own comparison kernels before the fork: the child may write no file, a kernel cache neither."""
    import warp as wp

    for device in {str(a.device) for a in inputs if is_array(a)}:
        with contextlib.suppress(Exception), quiet():  # then the child says what is missing
            wp.load_module("warp.autograd", device=device)


def _ask(
    checker: Callable[..., Any], forward: Callable[..., Any], inputs: list[Any], reply_to: int
) -> tuple[bool | None, str]:
    try:
        quarantine.enter(keep={reply_to})
        text = io.StringIO()
        with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
            try:
                passed = bool(checker(forward, inputs=inputs, raise_exception=False, show_summary=True))
            except TypeError:  # a version without one of these arguments
                passed = bool(checker(forward, inputs=inputs))
        return passed, _COLOURS.sub("", text.getvalue())[-2000:]
    except BaseException as error:
        return None, f"{type(error).__name__}: {error}"

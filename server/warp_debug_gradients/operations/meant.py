"""Overwritten reads whose present values the adjoint is meant to read: restoring them spoils a gradient that is right. Pure.

An implicit solve is differentiated so: the residual is recorded with a first guess, the solver changes the unknown off
the tape, and the adjoint of the residual has to be taken at the solution. The tape is then not the program's forward
pass, and the terms along it are no errors.
"""

from __future__ import annotations

import math

from warp_debug_gradients.records import Ledger
from warp_debug_gradients.schemas import as_float

AS_IS = 0.02  # relative error of AD as it is that still is an agreement along the ledger's one direction
SPOILT = 10.0  # times that error, at least, with the recorded values restored,
SPOILT_FLOOR = 0.1  # and at least this

SAID = (
    "The tape reads values that are changed before their adjoint, and that is meant: the derivative agrees as it is, and "
    "not with the recorded values restored; an implicit solve is differentiated so, at its solution. The tape is not the "
    "program's forward pass then, and its single lines are not compared."
)


def is_meant(ledger: Ledger) -> bool:
    """Whether the backward pass is right as it is, and wrong with the recorded values restored."""
    what_if = ledger.get("what_if") or {}
    before, after = what_if.get("relative_error_as_is"), what_if.get("relative_error_restored")
    if before is None or after is None:
        return False
    as_is, restored = as_float(before), as_float(after)
    return math.isfinite(as_is) and as_is <= AS_IS and not restored < max(SPOILT * as_is, SPOILT_FLOOR)


def as_meant(ledger: Ledger) -> None:
    """Takes back what such a tape seems to tell: its overwrites do no harm, and its book is not that of the program."""
    if not is_meant(ledger):
        return
    for row in ledger.get("overwrites") or []:
        row["harmful"] = False
    ledger["jumps"], ledger["truncated"] = [], []
    ledger.pop("flat", None)
    ledger["meant"] = SAID

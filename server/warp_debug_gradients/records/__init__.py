"""The types of a run's JSON: what the probe writes, and what the server reads back from the evidence."""

from warp_debug_gradients.records.base import Place, Record, part, parts, read_json
from warp_debug_gradients.records.check import Check, Evaluation, Gradient, HorizonRow, HostValue, Numbers, Reported
from warp_debug_gradients.records.ledger import (
    AloneRow,
    JumpRow,
    Launch,
    Ledger,
    Ledgers,
    NamedArray,
    NonFiniteRow,
    ObservationRow,
    OverwriteRow,
    Share,
    Summation,
    TermRow,
    WhatIfRow,
    WriterRow,
)
from warp_debug_gradients.records.trace import GradientRead, Iteration, Trace

__all__ = [
    "AloneRow",
    "Check",
    "Evaluation",
    "Gradient",
    "GradientRead",
    "HorizonRow",
    "HostValue",
    "Reported",
    "Iteration",
    "JumpRow",
    "Launch",
    "Ledger",
    "Ledgers",
    "NamedArray",
    "NonFiniteRow",
    "Numbers",
    "ObservationRow",
    "OverwriteRow",
    "Place",
    "Record",
    "Share",
    "TermRow",
    "Trace",
    "Summation",
    "WhatIfRow",
    "WriterRow",
    "part",
    "parts",
    "read_json",
]

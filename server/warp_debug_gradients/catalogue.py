"""The cause codes: what each is, where it is explained, what repairs it. One vocabulary for code, text and tests.

Sections are those of references/quick-checks.md; documentation is a section of Warp's own user guide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

OVERWRITES = "Differentiability: Array Overwrites"
DEBUGGING = "Differentiability: Debugging Gradients"
LIMITATIONS = "Differentiability: Limitations and Workarounds"
TAPES = "Differentiability"
CUSTOM = "Differentiability: Custom Gradient Functions"
NATIVE = "Differentiability: Custom Native Functions"
FAQ = "FAQ: Differentiation and Interoperability"


@dataclass(frozen=True)
class CauseKind:
    """A cause code. `section` is of references/quick-checks.md ("1" to "11", "9b", ...), `documentation` of Warp's guide."""

    meaning: str
    section: str
    documentation: str


CATALOGUE: dict[str, CauseKind] = {
    "overwrite": CauseKind("a value that the adjoint needs was changed before the adjoint read it", "1", OVERWRITES),
    "accumulator_reset": CauseKind(
        "a buffer that is accumulated into is reset inside the tape by an operation that is not recorded",
        "1b",
        OVERWRITES,
    ),
    "missing_requires_grad": CauseKind("an array on the path has no gradient storage", "2", TAPES),
    "backward_disabled": CauseKind("the backward pass is disabled for a kernel, a module or globally", "2b", TAPES),
    "unrecorded_operation": CauseKind("part of the forward pass is not on the tape", "2c", TAPES),
    "host_round_trip": CauseKind("values pass through NumPy or another framework inside the objective", "2d", FAQ),
    "inplace_muldiv": CauseKind("an array element or component is multiplied or divided in place", "3", LIMITATIONS),
    "component_reassignment": CauseKind(
        "a component of a local vector, matrix or quaternion is assigned more than once", "3b", LIMITATIONS
    ),
    "dynamic_loop": CauseKind("a value carried through a dynamic loop is not replayed", "4", LIMITATIONS),
    "stale_gradient": CauseKind("the consumed gradient is not this iteration's", "5", TAPES),
    "singular_point": CauseKind("the adjoint is evaluated where the derivative does not exist", "6", LIMITATIONS),
    "double_count": CauseKind("the same contribution is counted more than once", "7", TAPES),
    "seed_mismatch": CauseKind(
        "backward is seeded with something else than the gradient of the objective", "7b", TAPES
    ),
    "truncation": CauseKind("the tape's windows or segments cut the chain of derivatives", "8", FAQ),
    "tape_scope": CauseKind("work recorded that is not the forward pass, or the forward pass not inside", "8b", TAPES),
    "unconverged_solver": CauseKind("the gradient of a truncated iteration, not of its solution", "8c", FAQ),
    "nonsmooth_choice": CauseKind("several subgradients are valid where a discrete choice switches", "9", LIMITATIONS),
    "where_overflow": CauseKind("the branch of wp.where that is not selected poisons the gradient", "9b", LIMITATIONS),
    "piecewise_constant": CauseKind(
        "zero is the right derivative; a surrogate is a modelling choice", "9c", LIMITATIONS
    ),
    "stochastic_forward": CauseKind("the objective changes between evaluations", "9d", DEBUGGING),
    "precision_floor": CauseKind(
        "the dtype is too coarse: for the objective's differences, for training, or for a gradient's long sum",
        "9e",
        DEBUGGING,
    ),
    "chaotic_horizon": CauseKind(
        "the derivative is right and useless: it grows exponentially with the horizon", "9f", DEBUGGING
    ),
    "custom_gradient": CauseKind("a custom gradient function is wrong", "10", CUSTOM),
    "replay_side_effect": CauseKind("atomic counters or other side effects run again in the replay", "10b", CUSTOM),
    "native_without_adjoint": CauseKind("a native snippet or builtin has no adjoint", "10c", NATIVE),
    "warp_defect": CauseKind("a defect of the installed Warp version", "11", LIMITATIONS),
    "gradients_correct": CauseKind("verified over the full horizon; the complaint has another reason", "12", DEBUGGING),
    "does_not_run": CauseKind("blocked: nothing was measured", "12b", DEBUGGING),
}


def described(cause: Any) -> None:
    """Fills in where the cause is explained: the section of quick-checks.md, and Warp's documentation."""
    kind = CATALOGUE.get(cause.code)
    if kind is not None:
        cause.quick_check = cause.quick_check or f"references/quick-checks.md §{kind.section}"
        cause.documentation = cause.documentation or kind.documentation

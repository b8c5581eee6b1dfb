"""The ledger before and after an edit: which error is gone. Pure."""

from __future__ import annotations

from typing import Any

from warp_debug_gradients.operations import ledger as ledgers
from warp_debug_gradients.operations.bisect_steps import place_of
from warp_debug_gradients.records import Ledger, Share, TermRow, parts
from warp_debug_gradients.schemas import Jump, LedgerSide, Term, as_float

GONE = 0.2  # of a jump, what may be left of one that is gone
LARGE = 0.02  # a jump of a smaller part of the derivative is none that was worth a repair


def ledger_side(run_id: str, kept: Ledger) -> LedgerSide:
    """What one ledger says."""
    jumps = [Jump.model_validate(j) for j in parts(kept, "jumps") if j.get("significant")]
    jumps += [_as_jump(name, t) for name in ("stale", "truncated") for t in parts(kept, name) if t.get("significant")]
    seed = kept.get("seed")
    if seed and seed.get("significant"):
        jumps.append(_as_jump("seed", seed))
    found = ledgers.overwrites(kept)
    harmful = [o for o in found if o.harmful]
    words = f"{len(jumps)} line(s) or term(s) above their noise, {len(harmful)} harmful overwrite(s)"
    return LedgerSide(
        run_id=run_id,
        iteration=kept.get("iteration"),
        jumps=jumps,
        harmful_overwrites=harmful,
        harmless_overwrites=sum(o.harmful is False for o in found),
        message=words,
    )


def vanished(before: LedgerSide | None, after: LedgerSide | None) -> str | None:
    """The largest jump of the first ledger of which (almost) nothing is left in the second. Lines shift, kernels stay."""
    if before is None or after is None or not before.run_id or not after.run_id:
        return None
    left: dict[Any, float] = {}
    for jump in after.jumps:
        left[_identity(jump)] = left.get(_identity(jump), 0.0) + abs(as_float(jump.share))
    for jump in sorted(before.jumps, key=lambda j: -abs(as_float(j.share))):
        share = abs(as_float(jump.share))
        if share >= LARGE and left.get(_identity(jump), 0.0) < GONE * share:
            return f"{place_of(jump)}{f' ({jump.kernel})' if jump.kernel and jump.file else ''}"
    return None


def _identity(jump: Jump) -> tuple[Any, ...]:
    return jump.kind, jump.kernel, jump.function


def _as_jump(kind: str, term: TermRow | Share) -> Jump:
    """A term outside the launches (stale gradient, truncated history, seed) beside the jumps."""
    t = Term.model_validate(term)
    where = t.allocated
    name = f"{kind} {t.variable or ''}".strip()
    place = {"file": where.file, "line": where.line} if where else {}
    numbers = {"value": t.value, "share": t.share, "noise": t.noise, "significant": True}
    return Jump.model_validate({"kind": kind, "kernel": name, **place, **numbers})

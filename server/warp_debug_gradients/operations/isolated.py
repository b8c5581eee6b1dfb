"""One adjoint alone, read from a ledger: which row belongs to a jump, and what it says in words. Pure."""

from __future__ import annotations

from warp_debug_gradients.records import AloneRow, Ledger, Place, parts
from warp_debug_gradients.schemas import GradcheckTape, Isolated, as_float

ORDER = {"wrong": 0, "undecided": 1, "right": 2}


def launch_alone(ledger: Ledger, place: Place) -> AloneRow | None:
    """The row of the launch at a jump's (or a reader's) line and kernel."""
    wanted = tuple(place.get(k) for k in ("file", "line", "kernel"))
    rows = parts(ledger, "isolated")
    return next(
        (
            r
            for r in rows
            if r.get("what") == "launch" and tuple(r.get(k) for k in ("file", "line", "kernel")) == wanted
        ),
        None,
    )


def functions_alone(ledger: Ledger, verdict: str) -> list[AloneRow]:
    """The functions whose custom gradient, by itself, is so: wrong, or right at all the arguments that were sampled."""
    return [r for r in parts(ledger, "isolated") if r.get("what") == "function" and r.get("verdict") == verdict]


def in_words(row: AloneRow) -> str:
    """A row as evidence."""
    if row["what"] == "function" and row.get("verdict") == "right":
        return (
            f"the custom gradient of {row.get('kernel')} is right by itself at {row.get('samples')} sampled arguments"
        )
    if row["what"] == "function":
        return (
            f"the custom gradient of {row.get('kernel')} is wrong by itself at {row.get('wrong')} of {row.get('samples')} "
            f"sampled arguments, such as {_numbers(row)}"
        )
    about = f" for {row.get('argument')}" if row.get("argument") else ""
    said = {"wrong": "is wrong by itself", "right": "is right by itself", "undecided": "is not decided by itself"}
    reason = f" ({row.get('reason')})" if row.get("reason") else ""
    restored = ", right with the launch's own inputs restored" if row.get("restored") == "right" else ""
    return (
        f"the adjoint of {row.get('kernel')} {said[row['verdict']]}{about}, on the inputs it read: {_numbers(row)}"
        f"{reason}{restored}"
    )


def _numbers(row: AloneRow) -> str:
    ad, fd, error = (
        as_float(value) if (value := row.get(k)) is not None else None
        for k in ("autodiff", "finite_difference", "error")
    )
    if ad is None or fd is None:
        return "nothing measured"
    return f"AD = {ad:.6g}, FD = {fd:.6g}" + (f" ± {error:.2g}" if error is not None else "")


def isolated(ledger: Ledger) -> list[Isolated]:
    """The rows of the result: wrong ones first, the blamed before the others."""
    rows = [Isolated.model_validate(row) for row in parts(ledger, "isolated")]
    return sorted(rows, key=lambda r: (ORDER[r.verdict], not r.blamed))


def gradcheck_tape(ledger: Ledger) -> GradcheckTape | None:
    """Warp's own per-kernel check, as it answered."""
    found = ledger.get("gradcheck_tape")
    return GradcheckTape.model_validate(found) if found else None

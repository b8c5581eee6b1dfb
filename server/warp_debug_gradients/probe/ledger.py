"""The adjoint ledger: which operation put the error into a gradient. Pure arithmetic over recorded terms.

With v a direction in parameter space, M_i the contents of all float arrays after op i, Ṁ_i their tangents
along v, and Ā_i the gradient buffers just before the adjoint of op i runs,

    I_i = Σ over arrays <Ā_i, Ṁ_i>

is the same number for every i if every adjoint is right (the dot-product test of adjoint models, done on
the user's data). Going backward, the adjoint of op i turns I_i into I_{i-1}; the jump J_i = I_{i-1} - I_i
is the error it put in. Changes of M between two operations that no tape knows of jump as well (kind
'unrecorded'). At the ends stand the seed (<seed, Ṁ_N> against the measured derivative), what gradient buffers
held before (stale), and state that came in with a tangent of its own (truncated):

    AD - FD = seed + stale + Σ J - truncated            (exactly: `balance` is what is left over)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

SIGNIFICANT_NOISE = 4.0  # a jump counts where it is this many times its own noise
SIGNIFICANT_SHARE = 1e-3  # and at least this part of the derivative
BOOK_POINTS = 400  # of the cumulative error kept for the picture
SERIES_POINTS = 60


@dataclass
class Term:
    """A value of the ledger with both one-sided versions: tangents from +h and from -h (their spread is curvature).

    rounding: standard error from the floating-point grid of the states, RMS over its elements.
    """

    plus: float = 0.0
    minus: float = 0.0
    rounding: float = 0.0

    @property
    def value(self) -> float:
        return 0.5 * (self.plus + self.minus)

    @property
    def noise(self) -> float:
        """What the value may be off: half the one-sided spread (an upper bound of the curvature) and round-off."""
        return math.hypot(0.5 * abs(self.plus - self.minus), self.rounding)

    def __add__(self, other: Term) -> Term:
        return Term(self.plus + other.plus, self.minus + other.minus, math.hypot(self.rounding, other.rounding))

    def __sub__(self, other: Term) -> Term:
        return Term(self.plus - other.plus, self.minus - other.minus, math.hypot(self.rounding, other.rounding))


def summed(terms: list[Term]) -> Term:
    """The sum of independent launches' terms. Their spreads are many samples of one noise, and in a sum they may
    cancel by chance: in quadrature they count as well, as far as that says more.
    """
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    spread = math.hypot(*(0.5 * (term.plus - term.minus) for term in terms))
    more = max(0.0, spread**2 - (0.5 * (total.plus - total.minus)) ** 2)
    return Term(total.plus, total.minus, math.hypot(total.rounding, math.sqrt(more)))


@dataclass
class Jump:
    """One operation's entry. kind: 'adjoint' or 'unrecorded' (a change before the operation that no tape knows).

    carried, replaced: of an unrecorded change, the derivative that came with the new values, and what the adjoint
    takes on to the values that were there before (their difference is the jump).
    """

    op: int
    kind: str
    term: Term
    kernel: str
    place: dict[str, Any] | None
    lost: list[dict[str, Any]] = field(default_factory=list)
    writers: list[dict[str, Any]] = field(default_factory=list)
    carried: float = 0.0
    replaced: float = 0.0


def is_significant(value: float, noise: float, scale: float) -> bool:
    """Whether a value stands out of its noise, and counts against the derivative."""
    return abs(value) > SIGNIFICANT_NOISE * noise and abs(value) > SIGNIFICANT_SHARE * scale


def group_jumps(
    jumps: list[Jump], scale: float, restored: dict[tuple[int, str], float] | None = None
) -> list[dict[str, Any]]:
    """Jumps summed by launch line, kernel and kind, largest first. scale: |FD|, what shares are parts of.

    restored: the same jumps with clobbered reads restored, by (op, kind).
    """
    groups: dict[Any, list[Jump]] = {}
    for jump in jumps:
        place = jump.place or {}
        key = (place.get("file"), place.get("line"), jump.kernel, jump.kind, _writers_key(jump))
        groups.setdefault(key, []).append(jump)
    rows = []
    for members in groups.values():
        total = summed([jump.term for jump in members])
        first = min(members, key=lambda j: j.op)
        place = first.place or {}
        lost = _distinct(item for j in members for item in j.lost)
        significant = is_significant(total.value, total.noise, scale)
        if first.kind == "unrecorded" and not (total.plus or total.minus):
            continue  # a reset or an assignment that costs the gradient nothing
        row = {
            "kind": "lost" if lost and significant and first.kind == "adjoint" else first.kind,
            "file": place.get("file"),
            "line": place.get("line"),
            "function": place.get("function"),
            "via": place.get("via"),
            "kernel": first.kernel,
            "ops": len(members),
            "first_op": first.op,
            "value": total.value,
            "share": total.value / scale if scale else math.nan,
            "noise": total.noise / scale if scale else math.nan,
            "significant": significant,
            "share_restored": None,
            "lost": lost if significant else [],
            "writers": _distinct(item for j in members for item in j.writers),
            "series": [[j.op, j.term.value] for j in sorted(members, key=lambda j: j.op)[:SERIES_POINTS]],
        }
        if first.kind == "unrecorded" and scale:
            row["carried"] = sum(j.carried for j in members) / scale
            row["replaced"] = sum(j.replaced for j in members) / scale
        if restored is not None and scale:
            row["share_restored"] = sum(restored.get((j.op, j.kind), 0.0) for j in members) / scale
        rows.append(row)
    return sorted(rows, key=by_weight)


def by_weight(row: dict[str, Any]) -> tuple[bool, float]:
    """Sorts what counts first, the largest first."""
    return not row["significant"], -abs(row["value"])


def _writers_key(jump: Jump) -> tuple[Any, ...]:
    return (
        tuple(sorted((w.get("file") or "", w.get("line") or 0) for w in jump.writers))
        if jump.kind == "unrecorded"
        else ()
    )


def _distinct(items: Any) -> list[dict[str, Any]]:
    seen: dict[str, dict[str, Any]] = {}
    for item in items:
        seen.setdefault(repr(sorted(item.items(), key=lambda kv: kv[0])), item)
    return list(seen.values())


def labelled_term(term: Term, scale: float, **labels: Any) -> dict[str, Any]:
    """A seed, stale or truncated term as a row."""
    return {
        **labels,
        "value": term.value,
        "share": term.value / scale if scale else math.nan,
        "noise": term.noise / scale if scale else math.nan,
        "significant": is_significant(term.value, term.noise, scale),
    }


def book(jumps: list[Jump], start: float) -> list[list[float]]:
    """[op, cumulative error from the end of the tape down to and including this op], thinned for a picture."""
    total, points = start, []
    for jump in sorted(jumps, key=lambda j: (-j.op, j.kind == "unrecorded")):
        total += jump.term.value
        points.append([jump.op, total])
    if len(points) > BOOK_POINTS:
        keep = max(1, len(points) // BOOK_POINTS)
        points = [*points[::keep], points[-1]]
    return points


def is_flat(rows: list[dict[str, Any]], *others: list[dict[str, Any]]) -> bool:
    """No entry of the ledger is significant."""
    return not any(row["significant"] for group in (rows, *others) for row in group)

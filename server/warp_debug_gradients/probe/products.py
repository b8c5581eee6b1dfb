"""Inner products of adjoints and tangents: the terms of the ledger, over parts of the arrays' memory."""

from __future__ import annotations

from typing import Any, Iterable, Iterator

import numpy as np

from .arrays import float_parts, host
from .cuts import Part
from .ledger import Term
from .recording import Recorder
from .shadows import Shadows, view_of

Spans = tuple[tuple[int, int], ...]


class Buffer:
    """A gradient buffer and what it is the adjoint of: an array that covers bytes [low, high) of a root."""

    def __init__(self, holder: Any, base: Any):
        self.holder, self.base = holder, base
        self.gradient = host(holder._grad)  # live
        self.inner = self.gradient.shape[len(holder.shape) :]
        self.plain = bool(
            holder.is_contiguous and self.gradient.dtype.kind == "f" and self.gradient.flags["C_CONTIGUOUS"]
        )
        self.flat = self.gradient.reshape(-1) if self.plain else None
        self.low = holder.ptr - base.ptr

    def parts(self, contents: list[np.ndarray], spans: Spans) -> Iterator[tuple[np.ndarray, ...]]:
        """The gradient, not all zero, and the same values in each copy of the root's bytes, for the spans.

        Strided arrays are taken whole.
        """
        if self.flat is None:
            seen = [view_of(c, self.base, self.holder, self.gradient.dtype, self.inner) for c in contents]
            yield from zip(float_parts(self.gradient), *map(float_parts, seen), strict=True)
            return
        size, dtype = self.flat.itemsize, self.flat.dtype
        for low, high in spans:
            first = max(low - self.low, 0) // size
            last = min(-(-(high - self.low) // size), self.flat.size)
            if first < last and (gradient := self.flat[first:last]).any():
                at = self.low + first * size
                yield gradient, *(np.frombuffer(c, dtype, last - first, at) for c in contents)


class Products:
    """<Ā, Ṁ> of each root's gradient buffers, with the contents that three runs had at one position."""

    def __init__(
        self,
        recorder: Recorder,
        holders: dict[int, list[Any]],
        now: Shadows,
        plus: Shadows,
        minus: Shadows,
        step: float,
    ):
        self.now, self.plus, self.minus, self.step = now, plus, minus, step
        self.finite = True  # whether the adjoints still are
        self.numbers = set(holders)
        self._recorder, self._holders = recorder, holders
        self._buffers: dict[int, list[Buffer]] = {}
        self._known: dict[int, dict[Spans, Term]] = {}  # of contents and gradients that have not changed since

    def of(self, parts: Iterable[Part]) -> dict[int, Term]:
        """The terms of the parts, by root."""
        spans: dict[int, list[tuple[int, int]]] = {}
        for number, low, high in parts:
            if number in self.numbers:
                spans.setdefault(number, []).append((low, high))
        found = {}
        for number, listed in spans.items():
            if all(number in run.bytes for run in (self.now, self.plus, self.minus)):
                key = tuple(listed)
                known = self._known.setdefault(number, {})
                if key not in known:
                    known[key] = self._term(number, key)
                found[number] = known[key]
        return found

    def anew(self, parts: Iterable[Part]) -> dict[int, Term]:
        """The same after contents or gradients of these roots have changed."""
        parts = list(parts)
        for number, _, _ in parts:
            self._known.pop(number, None)
        return self.of(parts)

    def whole(self) -> dict[int, Term]:
        """The terms of all roots."""
        self._known.clear()
        return self.of((n, 0, len(self.now.bytes[n])) for n in self.numbers if n in self.now.bytes)

    def forget(self, number: int) -> None:
        self._known.pop(number, None)
        self._buffers.pop(number, None)

    def _term(self, number: int, spans: Spans) -> Term:
        if not self.finite:
            return Term()
        contents = [run.bytes[number] for run in (self.now, self.plus, self.minus)]
        products = [self._product(*values) for b in self.buffers(number) for values in b.parts(contents, spans)]
        return products[0] if len(products) == 1 else total(products)

    def buffers(self, number: int) -> list[Buffer]:
        """The root's gradient buffers."""
        known = self._buffers.get(number)
        if known is None:
            base = self._recorder.roots[number]
            known = self._buffers[number] = [Buffer(holder, base) for holder in self._holders.get(number, ())]
        return known

    def _product(self, gradient: np.ndarray, now: np.ndarray, plus: np.ndarray, minus: np.ndarray) -> Term:
        """<gradient, tangent> of equally shaped plain arrays."""
        gradient = gradient.reshape(-1)
        used = None if gradient.all() else np.flatnonzero(gradient)  # what nobody has filled yet meets a zero adjoint
        a, m, p, q = (
            (x.reshape(-1) if used is None else x.reshape(-1)[used]).astype(np.float64)
            for x in (gradient, now, plus, minus)
        )
        grid = float(np.finfo(gradient.dtype).eps)
        with np.errstate(invalid="ignore", over="ignore"):
            weighted = a * m
            weighted *= p != q
            rounding = 0.3 * grid / self.step * float(np.sqrt(_dot(weighted, weighted)))
            return Term(_dot(a, p - m) / self.step, _dot(a, m - q) / self.step, rounding)


def _dot(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.einsum("i,i->", a, b))  # no BLAS: its threads fight for the cores


def total(terms: Iterable[Term]) -> Term:
    """The sum."""
    found = Term()
    for term in terms:
        found = found + term
    return found

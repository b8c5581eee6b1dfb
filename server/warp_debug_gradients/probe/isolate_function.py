"""Every function with a custom gradient by itself: its adjoint beside differences, on sampled arguments.

A small kernel that calls the function for many samples side by side is generated, and its adjoint runs on a tape of
its own. It works where the objective has no usable difference, and sees formulas that this run's values happen to
hide. In a forked child: a function that indexes out of its arrays ends the child, not the measurement.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
from typing import Any, Iterable

import numpy as np

from . import isolate
from .arrays import quiet
from .evaluator import EPS, SEED

SAMPLES = 64
SIZES = (0.1, 1.0, 4.0)  # of the sampled floating-point arguments, a third of the samples each
ARRAY_LENGTH, FIRST_INDEX, LAST_INDEX = 64, 16, 48  # arrays are longer than the sampled whole numbers reach

_SOURCE = """\
import warp as wp


def make(function, types, result):
    @wp.kernel(enable_backward=True, module="unique")
    def alone({parameters}, out: wp.array(dtype=result)):
        i = wp.tid()
        out[i] = function({arguments})

    return alone
"""


def user_kernels(wp: Any) -> list[Any]:
    """Every kernel that the program has defined so far."""
    modules = list(getattr(wp._src.context, "user_modules", {}).values())
    return [kernel for module in modules for kernel in list(module.kernels.values())]


def custom_functions(kernels: Iterable[Any], warp_folder: str) -> list[Any]:
    """The user's functions with a custom gradient that these kernels call, in whatever depth; overloads apart."""
    found: dict[int, Any] = {}
    queue, seen = list({id(k): k for k in kernels}.values()), set()
    while queue:
        caller = queue.pop()
        if id(caller) in seen:
            continue
        seen.add(id(caller))
        for function in _called(caller):
            for overload in (getattr(function, "user_overloads", None) or {"": function}).values():
                code = getattr(getattr(overload, "func", None), "__code__", None)
                if code is None or code.co_filename.startswith(warp_folder + os.sep):
                    continue
                queue.append(overload)
                if getattr(overload, "custom_grad_func", None) is not None:
                    found.setdefault(id(overload), overload)
    return list(found.values())


def _called(caller: Any) -> list[Any]:
    try:
        return [f for f in caller.adj.get_references()[2] if getattr(f, "func", None) is not None]
    except Exception:  # a function that Warp itself cannot resolve: it would not have launched
        return []


def isolate_function(wp: Any, function: Any) -> dict[str, Any]:
    """The function's entry in `isolated`."""
    row = unanswered(function)
    try:
        with quiet():
            return {**row, "message": None, **isolate.of_samples(_Samples(wp, function).judgements())}
    except Exception as error:
        return {**row, "reason": "not_callable", "message": f"{type(error).__name__}: {error}"[:200]}


def unanswered(function: Any) -> dict[str, Any]:
    """The entry of a function whose child died (an index out of bounds) or was out of time."""
    code = function.custom_grad_func.func.__code__
    return {
        "what": "function",
        "kernel": function.key,
        "file": code.co_filename,
        "line": code.co_firstlineno,
        "op": None,
        "argument": None,
        "blamed": False,
        "verdict": "undecided",
        "reason": "no_answer",
        "message": "its evaluation ended without an answer",
        **isolate.numbers(None),
    }


class _Samples:
    """The generated kernel with its sampled arguments. Shapes: (SAMPLES,) of each argument's dtype."""

    def __init__(self, wp: Any, function: Any):
        self.wp = wp
        self.types = dict(function.input_types)
        adjoint = dict(function.custom_grad_func.input_types)
        results = [t for name, t in adjoint.items() if name not in self.types]
        if len(results) != 1:
            raise TypeError(f"it returns {len(results)} values; one is looked at")
        self.result = results[0]
        self.kernel = self._kernel(function)
        rng = np.random.default_rng([SEED, len(self.types)])
        self.values = {name: self._sampled(kind, rng) for name, kind in self.types.items()}
        self.floats = [n for n, v in self.values.items() if v.dtype.kind == "f"]
        self.u = {n: rng.standard_normal(self.values[n].shape) * self._scale(n) for n in self.floats}
        self.weight: Any = None
        self.eps = max(EPS.get(str(self.values[n].dtype), EPS["float32"]) for n in self.floats)

    def judgements(self) -> list[Any]:
        """One a sample, of all its arguments together along a random direction; one of all samples together where
        they share an array."""
        base = self._forward(0.0)[0]
        self.weight = np.random.default_rng(SEED).standard_normal(base.shape)
        autodiff, magnitude = self._adjoint()
        size = np.linalg.norm((self.weight * base).reshape(SAMPLES, -1), axis=1)
        known: dict[float, tuple[np.ndarray, np.ndarray]] = {}

        def change(t: float, samples: Any) -> tuple[float, float]:
            if t not in known:
                known[t] = self._change(t, base)
            return float(np.mean(known[t][0][samples])), float(np.sum(known[t][1][samples]))

        shared = any(isinstance(t, self.wp.array) for t in self.types.values())
        groups = [slice(None)] if shared else [slice(k, k + 1) for k in range(SAMPLES)]
        return [
            isolate.judge_direction(
                lambda t, group=group: change(t, group),
                float(np.linalg.norm(size[group])),
                float(np.sum(autodiff[group])),
                float(np.linalg.norm(magnitude[group])),
                self.eps,
            )
            for group in groups
            if np.isfinite(size[group]).all()
        ]

    def _change(self, t: float, base: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        moved, steps = self._forward(t)
        with np.errstate(invalid="ignore"):
            return steps, np.sum((self.weight * (moved.astype(np.float64) - base)).reshape(SAMPLES, -1), axis=1)

    # -- running it ----------------------------------------------------------------------------

    def _forward(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        """The function at arguments + t u, and each sample's step after rounding."""
        values = dict(self.values)
        moved, weight = np.zeros(SAMPLES), np.zeros(SAMPLES)
        for name in self.floats:
            there, u = self.values[name].astype(np.float64), self.u[name]
            values[name] = (there + t * u).astype(self.values[name].dtype)
            unit = u / self._scale(name)
            delta = (values[name].astype(np.float64) - there) / self._scale(name)
            moved += self._by_sample(name, delta * unit)
            weight += self._by_sample(name, unit * unit)
        out, _ = self._launched(values, None)
        return out, moved / np.maximum(weight, 1e-300)

    def _adjoint(self) -> tuple[np.ndarray, np.ndarray]:
        """⟨Jᵀ w, u⟩ of each sample, and the usual size of that."""
        _, gradients = self._launched(self.values, self.weight)
        along, size = np.zeros(SAMPLES), np.zeros(SAMPLES)
        for name in self.floats:
            with np.errstate(invalid="ignore", over="ignore"):
                along += self._by_sample(name, gradients[name] * self.u[name])
                size += self._by_sample(name, (gradients[name] * self._scale(name)) ** 2)
        return along, np.sqrt(size)

    def _launched(self, values: dict[str, np.ndarray], seed: Any) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        wp = self.wp
        made = {n: self._array(n, v, seed is not None) for n, v in values.items()}
        out = wp.zeros(SAMPLES, dtype=self.result, device="cpu", requires_grad=seed is not None)
        arrays = [made[n] for n in self.types]
        wp.launch(self.kernel, dim=SAMPLES, inputs=arrays, outputs=[out], device="cpu", record_tape=False)
        if seed is None:
            return out.numpy().astype(np.float64), {}
        out.grad.assign(seed.astype(out.numpy().dtype))
        grads = [a.grad for a in arrays]
        options = {"adj_inputs": grads, "adj_outputs": [out.grad], "adjoint": True, "record_tape": False}
        wp.launch(self.kernel, dim=SAMPLES, inputs=arrays, outputs=[out], device="cpu", **options)
        return out.numpy(), {n: made[n].grad.numpy().astype(np.float64) for n in self.floats}

    # -- arguments -----------------------------------------------------------------------------

    def _kernel(self, function: Any) -> Any:
        """The generated kernel: Warp reads its source from a file."""
        arrays = {n for n, t in self.types.items() if isinstance(t, self.wp.array)}
        words = [f"a_{n}: wp.array(dtype=types[{n!r}])" for n in self.types]
        text = _SOURCE.format(
            parameters=", ".join(words),
            arguments=", ".join(f"a_{n}" if n in arrays else f"a_{n}[i]" for n in self.types),
        )
        descriptor, path = tempfile.mkstemp(prefix="warp_debug_gradients_alone_", suffix=".py")
        with os.fdopen(descriptor, "w") as stream:
            stream.write(text)
        try:
            spec = importlib.util.spec_from_file_location("warp_debug_gradients_alone", path)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            kinds = {n: t.dtype if n in arrays else t for n, t in self.types.items()}
            return module.make(function, kinds, self.result)
        finally:
            os.unlink(path)

    def _sampled(self, kind: Any, rng: Any) -> np.ndarray:
        wp = self.wp
        if isinstance(kind, wp.array):
            if kind.ndim != 1:
                raise TypeError("it takes an array of more than one dimension")
            return self._numbers(kind.dtype, ARRAY_LENGTH, rng)
        return self._numbers(kind, SAMPLES, rng)

    def _numbers(self, kind: Any, count: int, rng: Any) -> np.ndarray:
        """`count` values of a Warp type: whole numbers that index the arrays, floats of several sizes and signs."""
        values = self.wp.zeros(count, dtype=kind, device="cpu").numpy()
        if values.dtype.kind == "f":
            size = np.array(SIZES)[np.arange(count) % len(SIZES)].reshape(-1, *[1] * (values.ndim - 1))
            return (rng.standard_normal(values.shape) * size).astype(values.dtype)
        if values.dtype.kind in "iu":
            return rng.integers(FIRST_INDEX, LAST_INDEX, values.shape).astype(values.dtype)
        if values.dtype.kind == "b":
            return rng.integers(0, 2, values.shape).astype(values.dtype)
        raise TypeError(f"an argument of type {getattr(kind, '__name__', kind)} cannot be sampled")

    def _array(self, name: str, values: np.ndarray, differentiable: bool) -> Any:
        kind = self.types[name]
        dtype = kind.dtype if isinstance(kind, self.wp.array) else kind
        return self.wp.array(values, dtype=dtype, device="cpu", requires_grad=differentiable and name in self.floats)

    def _scale(self, name: str) -> np.ndarray:
        """Each sample moves by a part of its own size."""
        values = np.abs(self.values[name].astype(np.float64)).reshape(self.values[name].shape[0], -1)
        size = np.sqrt(np.mean(values**2, axis=1))
        return size.reshape(-1, *[1] * (self.values[name].ndim - 1))

    def _by_sample(self, name: str, terms: np.ndarray) -> np.ndarray:
        """Sums over each sample's own scalars; what all samples share is spread over them."""
        if isinstance(self.types[name], self.wp.array):
            return np.full(SAMPLES, float(np.sum(terms)) / SAMPLES)
        return np.sum(terms.reshape(SAMPLES, -1), axis=1)

"""One launch of a tape alone: its own adjoint beside differences of that single launch, on its recorded inputs.

Runs in a forked child of the unperturbed recording. The tape is walked backward with every overwritten read
restored, so that the adjoint Ā that arrives at a launch is as right as the launches behind it; there the launch is
made again from what it read then, a little beside it, and its adjoint is run on what the launch itself leaves.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any, Iterable

import numpy as np

from . import digits, isolate
from .arrays import host, overwrite
from .cuts import first_touched
from .evaluator import EPS, SEED, typical_size
from .events import Event
from .gradients import Contents, contents_of, gradient_holders, release, run_adjoint
from .recorded import Access, Operation
from .recording import Recorder
from .resummed import TIMES, sum_noise
from .roughness import roughness
from .shadows import BEFORE, WRITTEN, Shadows, memory, view_of
from .tangents import Perturbed, noise_of

MOST_INPUTS = 8  # arguments of a launch that are differenced
PROBING_STEP = 2.0**-6  # of an input's RMS: large enough that what the launch writes moves
NOISE_LAUNCHES = 50  # that it takes to measure the noise of one
MOST_KERNELS = 16  # kernels that are looked at besides those that are blamed


def chosen(operations: list[Operation], jumps: Iterable[Any], blamed: set[tuple[Any, ...]]) -> dict[int, bool]:
    """Index -> whether it is blamed: the largest jump of each blamed (file, line, kernel), and each other kernel's
    last launch (the nearest to where the walk begins)."""
    largest: dict[tuple[Any, ...], Any] = {}
    for jump in jumps:
        place = jump.place or {}
        key = (place.get("file"), place.get("line"), jump.kernel)
        if jump.kind == "adjoint" and key in blamed:
            known = largest.get(key)
            if known is None or abs(jump.term.value) > abs(known.term.value):
                largest[key] = jump
    launches = {o.index: o for o in operations if o.definition is not None}
    found = {jump.op: True for jump in largest.values() if jump.op in launches}
    seen = {launches[index].kernel for index in found}
    for operation in reversed(operations):
        if len(seen) >= MOST_KERNELS:
            break
        if operation.index in launches and operation.kernel not in seen:
            seen.add(operation.kernel)
            found[operation.index] = False
    return found


def isolate_launches(
    recorder: Recorder,
    event: Event,
    backward: Any,
    wanted: dict[int, bool],
    deadline: float,
    perturbed: list[Shadows],
    step: float,
) -> list[dict[str, Any]]:
    """A row for each wanted launch that was reached before `deadline` (time.perf_counter).

    perturbed: the runs at +step and -step.
    """
    if not wanted:
        return []
    assert recorder.shadows is not None
    now = Shadows.from_state(recorder.shadows.arena, recorder.shadows.state())
    tape, rows = event.subject, []
    entries = list(tape.launches)
    recording = recorder.recording
    runs = [now, *perturbed]

    def undo(op: int, phase: int) -> None:
        for run in runs:
            run.undo(op, phase)

    undo(len(entries), BEFORE)
    tape.launches = []
    backward(tape, *event.args[1:], **event.kwargs)  # seeds only
    holders = gradient_holders(recorder)  # an array may have been given its buffer as its seed
    last = min(wanted)
    dead = {} if recording.missed else first_touched(recorder.stretches, recording.operations, 0)
    for stretch in reversed(recorder.stretches):
        if stretch.stop <= last or time.perf_counter() > deadline:
            break
        blamed = wanted.get(stretch.start, False) and len(stretch) == 1
        left = [kept(run, recording.at(stretch.start)) for run in perturbed if blamed]
        undo(stretch.start, WRITTEN)
        if len(stretch) > 1:
            tape.launches = entries[stretch.start : stretch.stop]
            backward(tape)
        else:
            operation = recording.at(stretch.start)
            if operation.index in wanted:
                before = {n: now.bytes[n] for n in {n for n, _, _ in operation.parts} if n in now.bytes}
                launch = Launch(
                    recorder, operation, entries[operation.index], tape, backward, before, holders, deadline
                )
                read = [kept(run, operation) for run in perturbed if blamed]
                rows.append({**launch.row(Perturbed(read, left, step) if blamed else None), "blamed": blamed})
            there = contents_of(now, operation.parts)
            run_adjoint(recorder, backward, entries[operation.index], tape, there)
        undo(stretch.start, BEFORE)
        release(holders, dead.get(stretch.start, ()))
    tape.launches = entries
    return rows


def kept(run: Shadows, operation: Operation) -> dict[int, np.ndarray]:
    """The contents that a run has of an operation's roots, by number."""
    return {n: run.bytes[n].copy() for n in {n for n, _, _ in operation.parts} if n in run.bytes}


class Launch:
    """One launch that can be made again from its recorded inputs. `before`: its roots' contents (uint8), by number."""

    def __init__(
        self,
        recorder: Recorder,
        operation: Operation,
        entry: Any,
        tape: Any,
        backward: Any,
        before: dict[int, np.ndarray],
        holders: dict[int, list[Any]],
        deadline: float,
    ):
        self.deadline, self.began, self.made = deadline, time.perf_counter(), 0
        self.recorder, self.operation, self.entry = recorder, operation, entry
        self.tape, self.backward = tape, backward
        self.before = {n: content.copy() for n, content in before.items()}
        self.holders = [(n, h) for n in self.before for h in holders.get(n, ()) if host(h._grad).dtype.kind == "f"]

    def row(self, perturbed: Perturbed | None) -> dict[str, Any]:
        """The launch's entry in `isolated`; memory and gradient buffers are left as they were.

        perturbed: what two perturbed runs recorded of it; with it, how far their tangent of its results is off.
        """
        place = self.operation.place or {}
        row: dict[str, Any] = {
            "what": "launch",
            "kernel": self.operation.kernel,
            "file": place.get("file"),
            "line": place.get("line"),
            "via": place.get("via"),
            "op": self.operation.index,
        }
        live = {n: memory(self.recorder.roots[n]) for n in self.before}
        kept = {n: content.copy() for n, content in live.items()}
        gradients = [host(h._grad).copy() for _, h in self.holders]
        try:
            row.update(self._measured(gradients))
            if perturbed is not None and row["adjoint"] == "arriving" and self.affords_noise():
                row["tangent_noise"] = noise_of(self, perturbed)
                row["sum_noise"] = sum_noise(self.leaving, self._tangents(perturbed))
            return row
        except Exception as error:  # a kernel that cannot be launched again says so
            found = {"verdict": "undecided", "reason": "not_repeatable", "argument": None, **isolate.numbers(None)}
            return {**row, **found, "message": f"{type(error).__name__}: {error}"[:200]}
        finally:
            for n, content in kept.items():
                live[n][:] = content
            self._set_gradients(gradients)

    def _measured(self, arriving: list[np.ndarray]) -> dict[str, Any]:
        rng = np.random.default_rng([SEED, self.operation.index])
        self.make(self.before)
        self.after = {n: memory(self.recorder.roots[n]).copy() for n in self.before}
        written = self._written(rng)
        # What the launch does not write passes through it: without that part its own share is seen.
        arriving = [np.where(mask, g, np.zeros_like(g)) for mask, g in zip(written, arriving)]
        usable = all(np.isfinite(g).all() for g in arriving) and any(g.any() for g in arriving)
        if not usable:  # nothing arrives here, or nothing finite: any adjoint tests the same transposed Jacobian
            noise = [rng.standard_normal(g.shape).astype(g.dtype) for g in arriving]
            arriving = [np.where(mask, g, np.zeros_like(g)) for mask, g in zip(written, noise)]
        self.arriving, self.contents = arriving, self.after
        leaving = self.leaving()
        found = [self._input(access, leaving, rng) for access in self._inputs()]
        row = isolate.of_inputs(found)
        row["adjoint"] = "arriving" if usable else "random"
        row["digits"] = self._digits(rng)
        if self.operation.disabled:
            row["reason"] = "backward_disabled"
        if row["verdict"] == "wrong":
            row["restored"] = self._restored(row["argument"], rng)
        return row

    def _written(self, rng: Any) -> list[np.ndarray]:
        """Which scalars of each gradient's array the launch changes, on its inputs or a little beside them."""
        start = {n: content.copy() for n, content in self.before.items()}
        for access in self._inputs():
            view = self.view(start, access.number, access.array)
            view += (PROBING_STEP * typical_size(view.reshape(-1)) * rng.standard_normal(view.shape)).astype(view.dtype)
        self.make(start)
        beside = {n: memory(self.recorder.roots[n]) for n in self.before}
        pairs = ((self.before, self.after), (start, beside))
        return [
            np.logical_or(*(self.view(one, n, h) != self.view(other, n, h) for one, other in pairs))
            for n, h in self.holders
        ]

    def _digits(self, rng: Any) -> dict[str, Any] | None:
        """What the launch writes with one of its inputs moved by one floating-point step, of those that are far larger than
        the result; the worst input, None where none is so large."""
        used = [(n, h, weight != 0.0) for (n, h), weight in zip(self.holders, self.arriving)]
        results = [(digits.rms(self.view(self.after, n, h)[mask]), n, h, mask) for n, h, mask in used if mask.any()]
        if not results:
            return None
        size, n, holder, mask = max(results, key=lambda each: each[0])
        found: list[dict[str, Any]] = []
        for access in self.operation.accesses:
            if not access.read or access.number not in self.before or host(access.array).dtype.kind != "f":
                continue
            large = digits.far_larger(self.view(self.before, access.number, access.array).reshape(-1), size)
            if large is None:
                continue
            start = {k: content.copy() for k, content in self.before.items()}
            target = self.view(start, access.number, access.array)
            target[...] = digits.one_step_away(target, rng)
            self.make(start)
            moved = {k: memory(self.recorder.roots[k]) for k in self.before}
            here, there = (self.view(c, n, holder)[mask].astype(np.float64) for c in (moved, self.after))
            found.append(
                {
                    "argument": access.label,
                    "size": large[0],
                    "step": large[1],
                    "result_size": size,
                    "share": digits.rms(here - there) / size,
                }
            )
        return max(found, key=lambda row: row["share"], default=None)

    def _restored(self, label: str, rng: Any) -> str | None:
        """The verdict with the launch's own inputs restored as well; None where it does not change them."""
        if all(np.array_equal(self.before[n], self.after[n]) for n in self._read_numbers()):
            return None
        self.contents = self.before
        access = next(a for a in self._inputs() if a.label == label)
        return self._input(access, self.leaving(), rng)["verdict"]

    def _read_numbers(self) -> set[int]:
        return {a.number for a in self.operation.accesses if a.read} & self.before.keys()

    def _inputs(self) -> list[Access]:
        """The arguments whose derivative the adjoint has to give, each memory once."""
        found: dict[tuple[Any, ...], Access] = {}
        for access in self.operation.accesses:
            array = access.array
            readable = access.read and array._grad is not None and host(array).dtype.kind == "f"
            if readable and access.number in self.before:
                found.setdefault((array.ptr, tuple(array.shape), tuple(array.strides)), access)
        return list(found.values())[:MOST_INPUTS]

    def _input(self, access: Access, leaving: list[np.ndarray], rng: Any) -> dict[str, Any]:
        """Two directions of one argument; the second only where the first is wrong."""
        judgements = [self._direction(access, leaving, rng)]
        if judgements[0].verdict == "disagree":
            judgements.append(self._direction(access, leaving, rng))
        verdict, reason, decisive = isolate.verdict_of(judgements)
        return {"verdict": verdict, "reason": reason, "argument": access.label, **isolate.numbers(decisive)}

    def _direction(self, access: Access, leaving: list[np.ndarray], rng: Any) -> Any:
        array, number = access.array, access.number
        there = self.view(self.before, number, array)
        size = typical_size(there.reshape(-1))
        u = (rng.standard_normal(there.shape) * size).astype(there.dtype)
        eps = self.eps([there, *leaving])

        moved = {n: np.zeros_like(content) for n, content in self.before.items()}
        self.view(moved, number, array)[...] = u
        moves = [self.view(moved, n, holder).astype(np.float64) for n, holder in self.holders]
        autodiff = magnitude = 0.0
        for (n, _), g, along in zip(self.holders, leaving, moves, strict=True):
            if n != number:
                continue
            with np.errstate(invalid="ignore", over="ignore"):
                autodiff += float(np.sum(g * along))
                magnitude += float(np.sqrt(np.sum((g * size)[along != 0.0] ** 2)))

        def change(t: float) -> tuple[float, float]:
            start = {n: content.copy() for n, content in self.before.items()}
            target = self.view(start, number, array)
            target[...] = (there.astype(np.float64) + t * u).astype(there.dtype)
            delta = target.astype(np.float64) - there
            self.make(start)
            weight = float(np.sum(u.astype(np.float64) ** 2))
            return float(np.sum(delta * u)) / weight if weight else t, self.weighted_change()

        found = isolate.judge_direction(change, self.size(), autodiff, magnitude, eps)
        if found.verdict == "disagree" and math.isfinite(autodiff):
            if not self.affords_noise():
                return replace(found, verdict="inconclusive", reason="time")
            rough = roughness(lambda t: change(t)[1], eps * self.size())
            found = isolate.judge_direction(change, self.size(), autodiff, magnitude, eps, rough)
        if found.verdict == "disagree" and math.isfinite(autodiff):
            noise = sum_noise(self.leaving, moves)
            if noise is not None and abs(autodiff - found.finite_difference) <= TIMES * noise:
                return replace(found, verdict="inconclusive", reason=isolate.ROUND_OFF)
        return found

    def eps(self, others: Iterable[np.ndarray]) -> float:
        """Machine eps of the coarsest dtype that takes part."""
        return max(EPS.get(str(values.dtype), EPS["float32"]) for values in others)

    def affords_noise(self) -> bool:
        """Whether the time is enough to measure the round-off of the launch and of its adjoint."""
        now = time.perf_counter()
        return now + NOISE_LAUNCHES * (now - self.began) / self.made < self.deadline

    # -- memory --------------------------------------------------------------------------------

    def make(self, contents: dict[int, np.ndarray]) -> None:
        """Make the launch with these contents in memory; what it leaves stays there."""
        self.made += 1
        for n, content in contents.items():
            memory(self.recorder.roots[n])[:] = content
        kernel, dim, max_blocks, inputs, outputs, device, block_dim = self.entry[:7]
        options = {"device": device, "max_blocks": max_blocks, "block_dim": block_dim, "record_tape": False}
        self.recorder.wp.launch(kernel, dim=dim, inputs=inputs, outputs=outputs or [], **options)

    def view(self, contents: dict[int, np.ndarray], number: int, array: Any) -> np.ndarray:
        """The array's scalars in a copy of its root's bytes, writable."""
        values = host(array)
        inner = values.shape[len(array.shape) :]
        return view_of(contents[number], self.recorder.roots[number], array, values.dtype, inner)

    def weighted_change(self) -> float:
        """⟨Ā, F(x + t u) - F(x)⟩ over all gradient buffers."""
        now = {n: memory(self.recorder.roots[n]) for n in self.before}
        total = 0.0
        for (n, holder), weight in zip(self.holders, self.arriving):
            used = weight != 0.0
            here, there = (self.view(c, n, holder)[used].astype(np.float64) for c in (now, self.after))
            total += float(np.sum(weight[used].astype(np.float64) * (here - there)))
        return total

    def size(self) -> float:
        """‖Ā∘F(x)‖: the round-off of what the launch writes is the least noise of the change."""
        total = 0.0
        for (n, holder), weight in zip(self.holders, self.arriving):
            used = weight != 0.0
            left = weight[used].astype(np.float64) * self.view(self.after, n, holder)[used]
            total += float(np.sum(left[np.isfinite(left)] ** 2))
        return total**0.5

    def leaving(self, scale: float = 1.0) -> list[np.ndarray]:
        """What the launch's adjoint leaves in the gradient buffers (float64) where `scale` times as much arrives, over scale."""
        self._set_gradients([(scale * g.astype(np.float64)).astype(g.dtype) for g in self.arriving])
        run_adjoint(self.recorder, self.backward, self.entry, self.tape, _whole(self.contents))
        return [g.astype(np.float64) / scale for g in self._gradients()]

    def _tangents(self, perturbed: Perturbed) -> list[np.ndarray]:
        """What each gradient buffer's array differs by between the two runs when the launch reads it, a unit of direction."""
        found = []
        for n, holder in self.holders:
            plus, minus = (self.view(run, n, holder).astype(np.float64) for run in perturbed.read)
            found.append((plus - minus) / (2.0 * perturbed.step))
        return found

    def _gradients(self) -> list[np.ndarray]:
        return [host(h._grad).copy() for _, h in self.holders]

    def _set_gradients(self, values: list[np.ndarray]) -> None:
        for (_, holder), value in zip(self.holders, values):
            overwrite(holder._grad, value.reshape(-1))


def _whole(contents: dict[int, np.ndarray]) -> Contents:
    return {(number, 0, len(content)): content for number, content in contents.items()}

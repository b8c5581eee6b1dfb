"""The rerun engine: every evaluation is a fresh run of the program, perturbed at the same event.

For CUDA, whose contexts do not survive a fork, and for systems without fork. It drives the same generator
(`probe.check`) as the fork engine does inside the program: same requests, same replies, seconds instead of
milliseconds.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from typing import Any

from warp_debug_gradients import worker
from warp_debug_gradients.operations.measurement import Measurement
from warp_debug_gradients.probe import wire
from warp_debug_gradients.probe.check import Options, check_iteration, note_updates
from warp_debug_gradients.probe.evaluator import blank_reply, seconds_of
from warp_debug_gradients.probe.reported import compare_reported
from warp_debug_gradients.records import Trace, part
from warp_debug_gradients.worker import ProbeOutcome, Progress

AT_ONCE = max(1, (os.cpu_count() or 2) - (1 if (os.cpu_count() or 2) > 4 else 0))
FOLDER = "evaluations"  # in the evidence folder, while the evaluations run


async def run_rerun_engine(
    measurement: Measurement[Any], trace: Trace, plans: list[Any], options: dict[str, Any] | None = None
) -> ProbeOutcome:
    """Checks of all plans, also as the probe's `evaluate.json`; incomplete where the time ran out."""
    record = {**measurement.job(), "mode": "evaluate", "plan": {"iterations": plans}, "options": options or {}}
    measurement.evidence.write_json("evaluate.job.json", record)  # verify_fix repeats it
    engine = _Engine(measurement, at_once=1 if trace.get("uses_cuda") else AT_ONCE)
    checks: list[dict[str, Any]] = []
    timed_out = False
    try:
        for position, plan in enumerate(plans):
            if measurement.remaining < part(trace, "seconds")["total"] * 4:
                timed_out = True
                break
            ends = measurement.elapsed + measurement.remaining / (len(plans) - position)
            engine.seconds = {"evaluate": [], "reference": []}
            generator = check_iteration(
                plan, Options(**(options or {}), remaining=lambda ends=ends: ends - measurement.elapsed)
            )
            try:
                requests = next(generator)
                while True:
                    requests = generator.send(await engine.evaluate(requests, plan["iteration"]))
            except StopIteration as finished:
                checks.extend({**check, **seconds_of(engine.seconds)} for check in finished.value)
    finally:
        shutil.rmtree(engine.folder, ignore_errors=True)
    note_updates(checks)
    compare_reported(checks)
    status = "stopped" if timed_out else "completed"
    result = wire.plain({"mode": "evaluate", "status": status, "error": None, "engine": "rerun", "checks": checks})
    measurement.evidence.write_json("evaluate.json", result)
    return ProbeOutcome(measurement.relative_files(result), 0, timed_out, "", measurement.elapsed)


class _Engine:
    """Runs requests side by side, each in its own process."""

    def __init__(self, measurement: Measurement[Any], at_once: int) -> None:
        self.measurement = measurement
        self.folder = measurement.evidence.folder / FOLDER
        self.folder.mkdir(exist_ok=True)
        self.gate = asyncio.Semaphore(at_once)
        self.started = 0
        self.done = 0
        self.seconds: dict[str, list[float]] = {}  # by kind of request, of the iteration that is checked

    async def evaluate(self, requests: list[dict[str, Any]], iteration: int) -> list[dict[str, Any]]:
        """Replies in the order of the requests."""
        return list(await asyncio.gather(*(self._one(r, iteration) for r in requests)))

    async def _one(self, request: dict[str, Any], iteration: int) -> dict[str, Any]:
        async with self.gate:
            measurement, self.started = self.measurement, self.started + 1
            began = time.perf_counter()
            outcome = await worker.run_probe(
                measurement.interpreter.path,
                {**measurement.job(), "mode": "rerun", "request": wire.pack(request)},
                self.folder,
                name=f"{self.started:04d}",
                deadline_s=max(measurement.remaining, 1.0),
                output=f"{self.started:04d}.output.txt",
            )
            seconds = time.perf_counter() - began
            self.seconds.setdefault(request["kind"], []).append(seconds)
        self.done += 1
        if measurement.on_progress:
            message = f"iteration {iteration}: {self.done} runs of the program"
            await measurement.on_progress(Progress("evaluate", message, measurement.elapsed, self.done))
        reply = (outcome.result or {}).get("reply")
        if reply is not None:
            return {**wire.unpack(reply), "seconds": seconds}
        error = part(outcome.result, "error")
        return blank_reply(error.get("message") or outcome.death or "the program ended before its backward call")

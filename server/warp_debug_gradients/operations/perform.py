"""One call, from request to result: it waits for its turn, and whatever happens ends in a clear error."""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from warp_debug_gradients.errors import Busy, DebugGradientsError, ProbeFailed
from warp_debug_gradients.limits import calls_at_once
from warp_debug_gradients.schemas import Result, Target
from warp_debug_gradients.worker import HEARTBEAT_S, OnProgress, Progress
from warp_debug_gradients.workspace import Workspace

USEFUL_S = 3.0  # with less time left after waiting, nothing can be measured

Operation = Callable[[Any, Workspace, OnProgress | None], Awaitable[Result]]
_call_started: ContextVar[float | None] = ContextVar("call_started", default=None)
_queues: dict[Path, Queue] = {}


def call_started() -> float:
    """When the present call came in (time.monotonic): waiting for its turn is part of its time."""
    return _call_started.get() or time.monotonic()


async def perform(
    operation: Operation, request: BaseModel, workspace: Workspace, on_progress: OnProgress | None = None
) -> Result:
    """Runs the operation when it is its turn in this workspace. What runs no program (it has no target) need not wait."""
    _call_started.set(time.monotonic())
    queue = _queues.setdefault(workspace.root, Queue(calls_at_once()))
    try:
        async with queue.turn(request.timeout_s, on_progress) if isinstance(request, Target) else nullcontext():
            return await operation(request, workspace, on_progress)
    except DebugGradientsError:
        raise
    except ValidationError as error:
        fields = ", ".join(sorted({".".join(map(str, e["loc"])) for e in error.errors()})[:3])
        raise ProbeFailed(f"The probe's result cannot be read (fields {fields}). {_BLAME}") from error
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        raise ProbeFailed(
            f"The probe's result cannot be read ({type(error).__name__}; details on stderr). {_BLAME}"
        ) from error


_BLAME = "If the script writes into .warp-debug-gradients, keep it from that; else this is a fault of ours: report it."


class Queue:
    """The calls of one workspace: so many run, the others wait in the order in which they came."""

    def __init__(self, places: int) -> None:
        self.places = places
        self.running = 0
        self.waiting: list[asyncio.Event] = []

    @asynccontextmanager
    async def turn(self, timeout_s: float, on_progress: OnProgress | None) -> AsyncGenerator[None]:
        """Waits for a free place, reporting the position; gives the place back at the end."""
        if self.running < self.places:
            self.running += 1
        else:
            await self._wait(timeout_s, on_progress)
        try:
            yield
        finally:
            self._give_back()

    async def _wait(self, timeout_s: float, on_progress: OnProgress | None) -> None:
        mine, started = asyncio.Event(), time.monotonic()
        self.waiting.append(mine)
        try:
            while not mine.is_set():
                waited = time.monotonic() - started
                if waited > timeout_s - USEFUL_S:
                    raise Busy(
                        f"{self.running} calls are running in this workspace; this one waited {waited:.0f} s for its "
                        "turn. Call again when they have ended, or with a larger timeout_s."
                    )
                if on_progress:
                    message = f"number {self.waiting.index(mine) + 1} in the queue of this workspace"
                    await on_progress(Progress("waiting", message, waited))
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(mine.wait(), HEARTBEAT_S)
        except BaseException:
            if mine.is_set():
                self._give_back()
            else:
                self.waiting.remove(mine)
            raise

    def _give_back(self) -> None:
        if self.waiting:
            self.waiting.pop(0).set()  # the place goes to the next, and is never free in between
        else:
            self.running -= 1

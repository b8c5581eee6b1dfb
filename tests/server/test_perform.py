"""Calls at once: they wait for their turn, say where they stand, and do not mix."""

import asyncio
import re

import pytest

from warp_debug_gradients.errors import Busy, ProbeFailed
from warp_debug_gradients.operations import perform as module
from warp_debug_gradients.operations.perform import Queue, perform
from warp_debug_gradients.operations.run_repro import run_repro
from warp_debug_gradients.schemas import RunReproRequest

pytestmark = pytest.mark.anyio


async def settle():
    for _ in range(10):
        await asyncio.sleep(0)


async def test_the_others_wait_in_order_and_know_their_number():
    queue, order, said = Queue(1), [], []
    leave = asyncio.Event()

    async def call(name, wait=False):
        async def on_progress(progress):
            said.append((name, progress.message))

        async with queue.turn(60.0, on_progress):
            order.append(name)
            if wait:
                await leave.wait()

    tasks = [asyncio.create_task(call("a", wait=True))]
    await settle()
    for name in "bcd":
        tasks.append(asyncio.create_task(call(name)))
        await settle()
    assert order == ["a"]
    assert [(name, re.findall(r"\d+", text)) for name, text in said] == [("b", ["1"]), ("c", ["2"]), ("d", ["3"])]
    tasks[2].cancel()  # c goes away while it waits
    await settle()
    leave.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == ["a", "b", "d"]
    assert (queue.running, queue.waiting) == (0, [])


async def test_a_failed_call_gives_its_place_back():
    queue = Queue(2)
    for _ in range(5):
        with pytest.raises(RuntimeError):
            async with queue.turn(60.0, None):
                raise RuntimeError
    assert queue.running == 0


async def test_who_waits_too_long_is_told():
    queue = Queue(1)
    async with queue.turn(60.0, None):
        with pytest.raises(Busy, match="1 calls are running"):
            async with queue.turn(2.0, None):
                pass
    assert (queue.running, queue.waiting) == (0, [])


async def test_calls_at_once_do_not_mix(workspace, fake_probe, monkeypatch):
    monkeypatch.setattr(module, "_queues", {})
    requests = [RunReproRequest(script=f"{kind}.py") for kind in ("right", "diverges", "broken", "right", "diverges")]
    results = await asyncio.gather(*(perform(run_repro, request, workspace) for request in requests))
    assert [r.status for r in results] == ["completed", "completed", "blocked", "completed", "completed"]
    assert len({r.evidence for r in results}) == 5
    assert [r.iterations[-1].losses[0] if r.iterations else None for r in results] == [0.01, 0.3, None, 0.01, 0.3]
    index = (workspace.root / ".warp-debug-gradients" / "index.jsonl").read_text().splitlines()
    assert len(index) == 5


async def test_a_failure_of_ours_is_no_traceback(workspace, capsys):
    async def broken(*_):
        raise KeyError("secret detail")

    with pytest.raises(ProbeFailed) as failure:
        await perform(broken, RunReproRequest(script="right.py"), workspace)
    assert "secret detail" not in failure.value.message
    assert "Traceback" in capsys.readouterr().err  # for whoever mends it

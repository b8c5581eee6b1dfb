"""The probe's process: results, limits, deaths, cancellation. Whatever happens, no process is left."""

import asyncio
import json
import sys

import pytest

from warp_debug_gradients import worker
from warp_debug_gradients.environment import probe_environment
from warp_debug_gradients.errors import InterpreterError

pytestmark = pytest.mark.anyio


@pytest.fixture
def start(project, fake_probe, tmp_path):
    """Runs the stand-in on one of its scripts."""
    folder = tmp_path / "evidence"
    folder.mkdir()

    def run(kind, *, deadline_s=30.0, python=sys.executable, on_progress=None):
        target = {"script": str(project / f"{kind}.py"), "module": None, "forward": None, "inputs": None}
        job = {"mode": "trace", "target": target, "args": ["--lr", "1"], "cwd": str(project)}
        return worker.run_probe(python, job, folder, name="trace", deadline_s=deadline_s, on_progress=on_progress)

    return run


async def test_a_result_comes_back_with_the_output(start):
    outcome = await start("right")
    assert outcome.result["status"] == "completed"
    assert outcome.returncode == 0
    assert not outcome.timed_out
    assert "iter 2" in outcome.output


async def test_progress_is_handed_on(start):
    seen = []

    async def on_progress(progress):
        seen.append(progress)

    await start("hang", deadline_s=1.5, on_progress=on_progress)
    assert (seen[0].stage, seen[0].message) == ("trace", "starting")
    assert (seen[1].message, seen[1].done, seen[1].total) == ("running the script", 1, 3)
    assert seen[1].elapsed_s > seen[0].elapsed_s


@pytest.mark.parametrize("kind", ["hang", "stubborn"])
async def test_at_the_deadline_the_whole_tree_is_ended(start, project, is_gone, kind):
    outcome = await start(kind, deadline_s=1.5)
    assert outcome.timed_out
    pids = [int(pid) for pid in (project / "pids").read_text().split()]
    assert len(pids) == 3  # the probe, its child, and one that left for a session of its own
    assert all(is_gone(pid) for pid in pids)
    if kind == "hang":
        assert outcome.result["stopped_because"] == "signal"  # it was asked first
    else:
        assert outcome.result is None
        assert "time ran out" in outcome.death


async def test_cancellation_ends_the_whole_tree(start, project, is_gone):
    task = asyncio.create_task(start("hang"))
    while not (project / "pids").exists() or len((project / "pids").read_text().split()) < 3:
        await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert all(is_gone(int(pid)) for pid in (project / "pids").read_text().split())


async def test_a_death_without_a_report_is_told(start):
    crashed = await start("crash")
    assert crashed.result is None
    assert "SIGSEGV" in crashed.death
    left = await start("exits")
    assert "code 7" in left.death


async def test_the_output_is_limited(start, monkeypatch):
    monkeypatch.setenv("WARP_DEBUG_GRADIENTS_OUTPUT_MB", "0.001")
    outcome = await start("floods")
    assert len(outcome.output) < 1100
    assert "output is cut here" in outcome.output
    assert outcome.output.startswith("cwd")
    assert outcome.output.endswith("x\n")


async def test_an_interpreter_that_does_not_start(start, tmp_path):
    with pytest.raises(InterpreterError, match="does not start"):
        await start("right", python=str(tmp_path / "no-python"))


async def test_the_job_says_where_everything_goes(start, tmp_path):
    await start("right")
    job = json.loads((tmp_path / "evidence" / "trace.job.json").read_text())
    assert job["result"].endswith("trace.json")
    assert job["progress"].endswith("trace.progress.jsonl")


async def test_the_environment_is_an_allow_list(monkeypatch):
    for name in ("MY_TOKEN", "AWS_SECRET_ACCESS_KEY", "NVIDIA_API_KEY", "PYTHONSTARTUP", "SOMETHING_ELSE"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setenv("WARP_CACHE_PATH", "/tmp/x")
    monkeypatch.setenv("PYTHONPATH", f"/keep:{worker.BOOTSTRAP.parents[2]}")
    environment = probe_environment()
    assert environment["CUDA_VISIBLE_DEVICES"] == "0"
    assert environment["WARP_CACHE_PATH"] == "/tmp/x"
    assert environment["PYTHONPATH"] == "/keep"  # our own source root would put our package into the user's program
    assert not {"MY_TOKEN", "AWS_SECRET_ACCESS_KEY", "NVIDIA_API_KEY", "PYTHONSTARTUP", "SOMETHING_ELSE"} & set(
        environment
    )

"""The trace of an earlier call: taken only where the run would be the same."""

import time

import pytest

from warp_debug_gradients.operations import traces
from warp_debug_gradients.probe.inputs import identity

JOB = {"target": {"script": "/w/train.py"}, "args": [], "overrides": {}, "evidence": "/w/runs/1"}


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A program and its data, traced; returns (key, the files)."""
    monkeypatch.setattr(traces, "_kept", {})
    files = {name: tmp_path / name for name in ("train.py", "data.csv")}
    for file in files.values():
        file.write_text(file.name)
    (tmp_path / "trace.json").write_text("{}")
    time.sleep(0.02)  # a file's clock ticks by milliseconds
    began = time.time_ns()
    known = {str(f): identity(str(f)) for f in files.values()}
    key = traces.key_of(JOB, "python")
    trace = {"status": "completed", "inputs": {"began_ns": began, "unknown": None,
             "files": {**known, str(tmp_path / "absent.json"): None}}}  # fmt: skip
    traces.remember(key, tmp_path, trace, 20.0)
    return key, tmp_path, trace


def test_the_same_run(kept):
    key, folder, _ = kept
    found = traces.recall(key, 50.0)
    assert found is not None
    assert found.folder == folder


@pytest.mark.parametrize("name", ["train.py", "data.csv"])
def test_a_file_that_has_changed(kept, name):
    key, folder, _ = kept
    (folder / name).write_text("other")
    assert traces.recall(key, 50.0) is None


def test_a_file_that_has_come_or_gone(kept):
    key, folder, _ = kept
    (folder / "absent.json").write_text("{}")
    assert traces.recall(key, 50.0) is None
    (folder / "absent.json").unlink()
    assert traces.recall(key, 50.0) is not None
    (folder / "data.csv").unlink()
    assert traces.recall(key, 50.0) is None


def test_evidence_that_was_removed(kept):
    key, folder, _ = kept
    (folder / "trace.json").unlink()
    assert traces.recall(key, 50.0) is None


def test_a_file_that_changed_during_the_run(kept):
    """Nobody knows which of the two the program has read."""
    key, folder, trace = kept
    (folder / "data.csv").write_text("other")
    trace["inputs"]["files"][str(folder / "data.csv")] = identity(str(folder / "data.csv"))
    traces.remember(key, folder, trace, 20.0)
    assert traces.recall(key, 50.0) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "failed"},
        {"status": "stopped", "stopped_because": "signal"},
        {"inputs": {"began_ns": 0, "files": {}, "unknown": "it calls socket.connect"}},
        {"inputs": None},
    ],
)
def test_what_is_not_kept(kept, changes):
    key, folder, trace = kept
    traces.remember(key, folder, {**trace, **changes}, 20.0)
    assert traces.recall(key, 20.0) is None


def test_a_run_that_its_time_ended_gets_further_with_more(kept):
    key, folder, trace = kept
    traces.remember(key, folder, {**trace, "status": "stopped", "stopped_because": "budget"}, 20.0)
    assert traces.recall(key, 20.0) is not None
    assert traces.recall(key, 21.0) is None


def test_what_makes_another_run(kept, monkeypatch):
    key = kept[0]
    assert traces.key_of({**JOB, "evidence": "/w/runs/2"}, "python") == key
    assert traces.key_of({**JOB, "args": ["--fast"]}, "python") != key
    assert traces.key_of({**JOB, "overrides": {"train.STEPS": 3}}, "python") != key
    assert traces.key_of(JOB, "other") != key
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert traces.key_of(JOB, "python") != key


def test_an_old_one_is_made_anew(kept, monkeypatch):
    key = kept[0]
    monkeypatch.setattr(traces, "LONGEST_S", -1.0)
    assert traces.recall(key, 50.0) is None

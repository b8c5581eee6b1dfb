"""What is said of a version of Warp; what happens with a module that only calls itself warp."""

import sys

import pytest

from warp_debug_gradients import versions
from warp_debug_gradients.catalogue import CATALOGUE
from warp_debug_gradients.operations.doctor import doctor
from warp_debug_gradients.operations.run_repro import run_repro
from warp_debug_gradients.render.doctor import render_doctor
from warp_debug_gradients.schemas import RunReproRequest


@pytest.mark.parametrize("version", ["1.13.0", "1.15.2", "1.19.0", "1.19.1.dev20261101"])
def test_supported_versions_need_no_word(version):
    assert versions.support_note(version) is None


@pytest.mark.parametrize(
    ("version", "word"),
    [
        ("1.12.1", "older than 1.13"),
        ("0.9", "older"),
        ("1.20.0", "expected to work"),
        ("2.0.0", "new major"),
        ("x", "cannot be told"),
    ],
)
def test_other_versions_are_told(version, word):
    assert word in (versions.support_note(version) or "")


def test_the_table_tells_versions_apart():
    older, newer = versions.differences("1.13.0"), versions.differences("1.19.0")
    assert newer == []
    assert len(versions.differences("1.16.4")) == sum(b.since > (1, 16) for b in versions.BEHAVIOURS) < len(older)
    assert {b.cause for b in versions.BEHAVIOURS if b.cause} <= set(CATALOGUE)
    assert versions.differences(None) == []


@pytest.fixture
def fake_warp(tmp_path, monkeypatch):
    """A module `warp` that comes before the real one; returns what makes it."""

    def make(text):
        (tmp_path / "fake" / "warp").mkdir(parents=True)
        (tmp_path / "fake" / "warp" / "__init__.py").write_text(text)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path / "fake"))

    return make


@pytest.mark.anyio
@pytest.mark.parametrize(
    "text", ["__version__ = '1.5.0'\n", "__version__ = '2.0.0'\nclass Tape: pass\n", "", "x = 1\n"]
)
async def test_a_warp_that_cannot_be_watched(workspace, fake_warp, text):
    fake_warp(text)
    (workspace.root / "train.py").write_text("import warp as wp\nprint(wp)\n")
    result = await run_repro(RunReproRequest(script="train.py", python=sys.executable, timeout_s=30), workspace)
    assert result.status == "blocked"
    assert result.error.type == "UnsupportedWarp"
    assert "1.13 to 1.19" in result.error.message
    assert (result.error.file, result.error.line) == ("train.py", 1)

    found = await doctor(workspace, sys.executable)
    assert found.exit_code == 1
    (fault,) = [check for check in found.checks if check.status == "fault"]
    assert fault.name == "warp"
    assert "warp-lang" in fault.mend


@pytest.mark.anyio
async def test_a_version_of_the_future_is_noted(workspace):
    (workspace.root / "train.py").write_text("import warp as wp\nwp.__version__ = '2.0.0'\n")
    result = await run_repro(RunReproRequest(script="train.py", python=sys.executable), workspace)
    assert result.status == "completed"
    assert "new major version" in result.notes[0]


@pytest.mark.anyio
async def test_doctor_is_content_here(workspace):
    found = await doctor(workspace, sys.executable)
    assert found.exit_code == 0, render_doctor(found)
    names = [check.name for check in found.checks]
    assert {"server", "workspace", "interpreter", "warp", "devices", "kernel cache", "compiler on cpu", "fork"} <= set(
        names
    )
    assert render_doctor(found).startswith("Ready")


@pytest.mark.anyio
async def test_doctor_says_what_is_to_be_mended(workspace, tmp_path, monkeypatch):
    bare = await doctor(workspace, str(tmp_path / "none"))
    assert [check.name for check in bare.checks if check.status == "fault"] == ["interpreter"]

    (tmp_path / "outside").mkdir()
    (workspace.root / ".warp-debug-gradients").symlink_to(tmp_path / "outside")
    monkeypatch.setenv("WARP_DEBUG_GRADIENTS_MEMORY_GB", "much")
    bad = await doctor(workspace, sys.executable)
    faults = {check.name: check for check in bad.checks if check.status == "fault"}
    assert set(faults) == {"workspace", "usage"}
    assert "WARP_DEBUG_GRADIENTS_MEMORY_GB" in faults["usage"].found
    assert all(check.mend for check in faults.values())

"""scan_patterns as an operation and a command: files found, evidence, text, exit codes. The patterns: tests/patterns."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from warp_debug_gradients.errors import UsageError, WorkspaceError
from warp_debug_gradients.evidence import finished_runs
from warp_debug_gradients.operations.scan_patterns import scan_patterns
from warp_debug_gradients.render import render
from warp_debug_gradients.schemas import ScanPatternsRequest
from warp_debug_gradients.trim import trimmed
from warp_debug_gradients.workspace import Workspace

pytestmark = pytest.mark.anyio
SOURCE_ROOT = Path(__file__).parents[2] / "server"

KERNELS = """
import warp as wp

@wp.kernel
def scale(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    i = wp.tid()
    a[i] *= b[i]
"""
TRAIN = """
import a_package_nobody_has
import warp as wp
from model.parts import scale

a = wp.zeros(4, dtype=float, requires_grad=True)
b = wp.ones(4, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(scale, 4, inputs=[a, b])
tape.backward(grads={a: wp.ones(4, dtype=float)})
raise SystemExit("never run")
"""


@pytest.fixture
def workspace(tmp_path):
    """A namespace package with a kernel that multiplies in place; a script that would not run; a file nobody imports."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "parts.py").write_text(KERNELS)
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "unrelated.py").write_text(KERNELS.replace("scale", "other"))
    return Workspace.find(tmp_path)


async def test_a_program_that_does_not_run(workspace):
    result = await scan_patterns(ScanPatternsRequest(script="train.py"), workspace)
    assert result.scanned == ["train.py", "model/parts.py"]
    (hit,) = [h for h in result.hits if h.likelihood == "strong"]
    assert (hit.code, hit.file, hit.line, hit.source) == ("inplace_muldiv", "model/parts.py", 7, "a[i] *= b[i]")
    assert hit.quick_check == "3"
    assert hit.why
    assert hit.harmless
    assert (result.verdict, result.exit_code, result.interpreter) == (None, 0, None)
    assert result.next is not None
    assert (result.next.tool, result.next.arguments) == ("gradcheck_full_horizon", {"script": "train.py"})
    assert result.elapsed_s is not None
    assert result.elapsed_s < 2.0


async def test_evidence(workspace):
    result = await scan_patterns(ScanPatternsRequest(script="train.py"), workspace)
    folder = workspace.root / result.evidence
    assert json.loads((folder / "result.json").read_text())["hits"] == [h.model_dump(mode="json") for h in result.hits]
    assert (folder / "sources" / "model" / "parts.py").read_text() == KERNELS
    assert json.loads((folder / "job.json").read_text())["request"]["script"] == "train.py"
    assert "scan-patterns train.py" in (folder / "rerun.sh").read_text()
    assert next(finished_runs(workspace))["operation"] == "scan_patterns"


async def test_text_is_short_and_says_what_it_is(workspace):
    many = "\n".join(KERNELS.replace("scale", f"scale{n}") for n in range(30))
    (workspace.root / "model" / "parts.py").write_text(KERNELS + many)
    result = await scan_patterns(ScanPatternsRequest(script="train.py"), workspace)
    text = render(result)
    assert text.startswith("LEADS: 1 place")
    assert "A hit is a lead, never a verdict" in text
    assert "model/parts.py:7: a[i] *= b[i]" in text
    assert len(text) < 4500
    assert len(render(result, "full")) > len(text)
    short = trimmed(result, "concise")
    assert len(short.hits) == 12
    assert any("hits (12 of 31)" in note for note in short.notes)


async def test_a_file_that_cannot_be_parsed_is_said(workspace):
    (workspace.root / "model" / "parts.py").write_text("def broken(:\n")
    result = await scan_patterns(ScanPatternsRequest(script="train.py"), workspace)
    assert result.status == "completed"
    assert [(s.file, "line 1" in s.reason) for s in result.skipped] == [("model/parts.py", True)]
    assert "model/parts.py" in render(result)
    assert result.scanned == ["train.py"]


async def test_modules_and_callables(workspace):
    (workspace.root / "pkg").mkdir()
    (workspace.root / "pkg" / "__init__.py").write_text("")
    (workspace.root / "pkg" / "run.py").write_text("from . import kernels\nfrom ..pkg.more import x\n")
    (workspace.root / "pkg" / "kernels.py").write_text(KERNELS)
    (workspace.root / "pkg" / "more.py").write_text("x = 1\n")
    by_module = await scan_patterns(ScanPatternsRequest(module="pkg.run"), workspace)
    assert by_module.scanned[0] == "pkg/run.py"
    assert set(by_module.scanned) == {"pkg/run.py", "pkg/__init__.py", "pkg/kernels.py", "pkg/more.py"}
    by_callable = await scan_patterns(ScanPatternsRequest(forward="pkg/run.py:loss"), workspace)
    assert by_callable.scanned == by_module.scanned


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        ({}, UsageError),
        ({"script": "train.py", "module": "train"}, UsageError),
        ({"script": "nowhere.py"}, WorkspaceError),
        ({"module": "nowhere"}, WorkspaceError),
        ({"script": "../outside.py"}, WorkspaceError),
    ],
)
async def test_refusals(workspace, request_, error):
    with pytest.raises(error):
        await scan_patterns(ScanPatternsRequest(**request_), workspace)


async def test_a_link_out_of_the_workspace_is_not_followed(workspace, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "secret.py"
    outside.write_text(KERNELS)
    (workspace.root / "model" / "parts.py").unlink()
    (workspace.root / "model" / "parts.py").symlink_to(outside)
    result = await scan_patterns(ScanPatternsRequest(script="train.py"), workspace)
    assert result.scanned == ["train.py"]
    assert [s.reason for s in result.skipped] == ["outside the workspace"]


async def test_command(workspace):
    environment = {**os.environ, "PYTHONPATH": str(SOURCE_ROOT)}

    def run(*arguments):
        command = [sys.executable, "-m", "warp_debug_gradients", "scan-patterns", *arguments]
        return subprocess.run(command, cwd=workspace.root, env=environment, capture_output=True, text=True)

    done = run("train.py", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [h["code"] for h in found["hits"]] == ["inplace_muldiv"]
    again = subprocess.run(["sh", f"{found['evidence']}/rerun.sh"], cwd=workspace.root, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert again.stdout.startswith("LEADS: 1 place")
    assert run("nowhere.py").returncode == 2

"""Every hostile program gets a clear answer; no process, no file and no secret is left anywhere."""

import os
import sys
import time

import pytest
from hostile import SCRIPTS, expected

from warp_debug_gradients.errors import DebugGradientsError
from warp_debug_gradients.operations.perform import perform
from warp_debug_gradients.operations.run_repro import run_repro
from warp_debug_gradients.render import render
from warp_debug_gradients.schemas import RunReproRequest
from warp_debug_gradients.workspace import Workspace

pytestmark = pytest.mark.anyio
NAMES = sorted(path.stem for path in SCRIPTS.glob("*.py"))
LONGEST_ANSWER = 6000  # characters: about 1,500 tokens


def test_there_are_many():
    assert len(NAMES) >= 40


@pytest.mark.parametrize("name", NAMES)
async def test_a_hostile_program(name, tmp_path, monkeypatch, planted, temporary, processes_of):
    case = expected(name)
    for variable, value in case.limits.items():
        monkeypatch.setenv(f"WARP_DEBUG_GRADIENTS_{variable}", value)
    root = tmp_path / "project"
    root.mkdir()
    script = root / f"{name}.py"
    script.write_bytes((SCRIPTS / f"{name}.py").read_bytes())
    if case.cwd:
        (root / case.cwd).mkdir()
    request = RunReproRequest(script=script.name, cwd=case.cwd, python=sys.executable, timeout_s=case.timeout)

    started = time.monotonic()
    if case.error:
        with pytest.raises(DebugGradientsError) as refusal:
            await perform(run_repro, request, Workspace.find(root))
        assert refusal.value.code == case.error
        answer, structured = refusal.value.message, ""
    else:
        result = await perform(run_repro, request, Workspace.find(root))
        answer, structured = render(result), result.model_dump_json()
        assert result.status in case.status, answer
    assert time.monotonic() - started < case.timeout + case.patience
    assert processes_of() == []

    for text in case.says:
        assert text in answer + structured, answer
    assert len(answer) < LONGEST_ANSWER
    assert all(character.isprintable() or character == "\n" for character in answer)
    assert "planted-" not in answer + structured

    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    left = {path.relative_to(tmp_path).as_posix() for path in files} - {f"project/{name}.py"}
    allowed = ("project/.warp-debug-gradients/", *([case.leaves] if case.leaves else []))
    assert [path for path in left if not path.startswith(allowed)] == []
    assert [path for path in files if b"planted-" in path.read_bytes()] == []
    assert list(temporary.iterdir()) == []


def test_the_secrets_are_there(planted):
    assert all(os.environ[name] == value for name, value in planted.items())

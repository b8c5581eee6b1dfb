"""Tool inputs made up by hypothesis: every answer is a result or a clear refusal; nothing leaves the workspace.

FUZZ_CALLS sets how many calls are made (default 300; 10,000 by hand). The probe is a stub: no process is started.
"""

import asyncio
import json
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp.server.mcpserver.exceptions import ToolError

from warp_debug_gradients import worker
from warp_debug_gradients.app import mcp
from warp_debug_gradients.worker import ProbeOutcome

CALLS = int(os.environ.get("FUZZ_CALLS", "300"))
PATHS = st.one_of(
    st.sampled_from(
        ["right.py", "./right.py", "../outside.py", "/etc/passwd", "link.py", "linked/outside.py", "right.py/x", ".", "",
         "~/x.py", "~nobody/x.py", "a\0b", "right.py:", "right.py:fit", "../outside.py:fit", "//right.py", "x" * 5000]
    ),
    st.text(max_size=30),
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
RIGHT = {
    "args": st.lists(st.text(max_size=20), max_size=3),
    "cwd": st.sampled_from([".", "", "./", "folder", "folder/.."]),
    "overrides": st.dictionaries(st.sampled_from(["right.STEPS", "a.B"]), st.integers() | st.booleans(), max_size=2),
    "parameter": st.text(max_size=12),
    "objective": st.text(max_size=12),
    "device": st.text(max_size=6),
    "iteration": st.integers(0, 10**12),
    "timeout_s": st.floats(0.1, 3600),
    "detail": st.sampled_from(["concise", "full"]),
    "env": st.just(["PATH"]),
}
LIKELY = {
    "script": PATHS,
    "module": PATHS,
    "forward": PATHS,
    "inputs": PATHS,
    "cwd": PATHS,
    "python": PATHS,
    "args": st.lists(st.text(max_size=20), max_size=3),
    "overrides": st.dictionaries(st.text(max_size=12), st.integers() | st.floats() | st.text(max_size=5), max_size=3),
    "env": st.lists(st.sampled_from(["PATH", "NOT_SET", "", "A=B", "\0"]), max_size=2),
    "timeout_s": st.floats() | st.integers(),
    "iteration": st.integers(),
    "detail": st.sampled_from(["concise", "full", "x"]),
}


@st.composite
def calls(draw, schemas):
    """A tool's name, and arguments that are right, nearly right, or anything."""
    tool = draw(st.sampled_from(sorted(schemas)))
    known = sorted(schemas[tool])
    if draw(st.booleans()):
        names = draw(st.lists(st.sampled_from([name for name in known if name in RIGHT]), max_size=4))
        return tool, {"script": "right.py", **{name: draw(RIGHT[name]) for name in names}}
    arguments = {"script": "right.py"} if draw(st.booleans()) else {}
    for name in draw(st.lists(st.sampled_from(known), max_size=5)):
        arguments[name] = draw(st.one_of(LIKELY.get(name, JSON), JSON))
    if draw(st.integers(0, 4)) == 0:
        arguments[draw(st.text(max_size=12))] = draw(JSON)
    return tool, arguments


@pytest.fixture
def stubbed(project, tmp_path, monkeypatch):
    """The tools, with a stub for the probe that says what it was asked to open."""
    (tmp_path / "outside.py").write_text("")
    (project / "link.py").symlink_to(tmp_path / "outside.py")
    (project / "linked").symlink_to(tmp_path)
    (project / "folder").mkdir()
    monkeypatch.setenv("WARP_DEBUG_GRADIENTS_WORKSPACE", str(project))
    asked = []

    async def stub(python, job, folder, **options):
        asked.append((job, folder))
        return ProbeOutcome(result=None, returncode=1, timed_out=False, output="nothing\n", seconds=0.0)

    monkeypatch.setattr(worker, "run_probe", stub)
    return asked


def test_made_up_calls(stubbed, project, tmp_path):
    schemas = {tool.name: tool.input_schema["properties"] for tool in asyncio.run(mcp.list_tools())}
    inside = str(project.resolve())
    before = {path for path in tmp_path.rglob("*") if not path.is_relative_to(project)}
    seen = {"answered": 0, "refused": 0}

    @settings(max_examples=CALLS, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(calls(schemas))
    def call(made_up):
        tool, arguments = made_up
        stubbed.clear()
        try:
            result = asyncio.run(mcp.call_tool(tool, arguments))
        except ToolError as refusal:
            seen["refused"] += 1
            text = str(refusal)
            assert len(text) < 8000
        else:
            seen["answered"] += 1
            text = result.content[0].text
            json.dumps(result.structured_content, allow_nan=False)
        assert "Traceback" not in text
        assert "fault of ours" not in text
        assert text.strip() not in (f"Error executing tool {tool}", "")
        for job, folder in stubbed:
            named = [job["cwd"], str(folder), *(v for k, v in job["target"].items() if v and k != "module")]
            for path in named:
                assert os.path.realpath(path.rsplit(":", 1)[0] if ".py:" in path else path).startswith(inside), path

    call()
    print(seen)
    assert min(seen.values()) > CALLS // 10
    assert {path for path in tmp_path.rglob("*") if not path.is_relative_to(project)} == before

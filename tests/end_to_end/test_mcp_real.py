"""The real server over stdio with real Warp programs: the SDK's client in both protocol eras, and fastmcp's."""

import json
import os
import sys

import anyio
import jsonschema
import psutil
import pytest
import truths
from mcp import Client, MCPError, StdioServerParameters

pytestmark = pytest.mark.anyio
ERAS = {"modern": {}, "legacy": {"mode": "legacy"}}
BROKEN, RIGHT = "buffer_reuse-broken", "diverging_but_correct-train"
SLOW = """
import numpy as np
import time
import warp as wp


@wp.kernel
def square(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, x[i] * x[i])


x = wp.array(np.ones(4), dtype=float, requires_grad=True)
for step in range(2):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(square, 4, inputs=[x], outputs=[loss])
        time.sleep(0.5)
    tape.backward(loss)
    x.assign(x.numpy() - 0.1 * x.grad.numpy())
    tape.zero()
"""


@pytest.fixture
def project(tmp_path):
    """A workspace with a broken, a right and a slow program."""
    for name in (BROKEN, RIGHT):
        program = truths.named(name)
        (tmp_path / f"{name}.py").write_text((program.folder / str(program.script)).read_text())
    (tmp_path / "slow.py").write_text(SLOW)
    return tmp_path


@pytest.fixture
def server(project):
    """How a host starts it."""
    environment = {
        **{k: os.environ[k] for k in ("PATH", "HOME", "WARP_CACHE_PATH") if k in os.environ},
        "PYTHONPATH": str(truths.ROOT / "server"),
        "WARP_DEBUG_GRADIENTS_WORKSPACE": str(project),
    }
    return StdioServerParameters(
        command=sys.executable, args=["-m", "warp_debug_gradients", "serve"], env=environment, cwd=str(project)
    )


@pytest.mark.parametrize("era", ERAS)
async def test_both_tools(server, era):
    async with Client(server, **ERAS[era]) as client:
        schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
        for name, verdict in ((BROKEN, "disagree"), (RIGHT, "agree")):
            target = {"script": f"{name}.py", "python": sys.executable}
            seen = await call(client, schemas, "run_repro", target)
            assert seen["status"] == "completed"
            assert seen["parameters"]
            assert seen["iterations_seen"] > 1
            checked = await call(client, schemas, "gradcheck_full_horizon", target)
            assert checked["verdict"] == verdict, checked["message"]
            assert checked["horizon"]["full"] is True
            await read_back(client, checked)


async def read_back(client, result):
    """The run's records as resources: the list, the result, the command that repeats it; nothing else."""
    (listed,) = (await client.read_resource("evidence://runs")).contents
    rows = {row["run_id"]: row for row in json.loads(listed.text)}
    assert rows[result["run_id"]]["verdict"] == result["verdict"]
    (template,) = [t for t in (await client.list_resource_templates()).resource_templates if "runs" in t.uri_template]
    uri = template.uri_template.replace("{run_id}", result["run_id"])
    (record,) = (await client.read_resource(uri.replace("{name}", "result.json"))).contents
    assert json.loads(record.text)["gradient"]["autodiff"] == pytest.approx(result["gradient"]["autodiff"], rel=1e-4)
    (script,) = (await client.read_resource(uri.replace("{name}", "rerun.sh"))).contents
    assert "gradcheck-full-horizon" in script.text
    for name in ("nothing.json", "sources%2Fbuffer_reuse-broken.py", "..%2F..%2Findex.jsonl"):
        with pytest.raises(MCPError, match="no record|Unknown resource"):
            await client.read_resource(uri.replace("{name}", name))


async def call(client, schemas, tool, arguments):
    """The structured result, which must be what the published schema says; progress must have come."""
    progress = []

    async def on_progress(done, total, message):
        progress.append((done, message))

    result = await client.call_tool(tool, arguments, progress_callback=on_progress)
    assert not result.is_error, result.content
    jsonschema.validate(result.structured_content, schemas[tool])
    assert len(progress) >= 2
    assert [p[0] for p in progress] == sorted(p[0] for p in progress)
    assert len(result.content[0].text) < 6000  # about 1,500 tokens
    return result.structured_content


@pytest.mark.parametrize("era", ERAS)
async def test_cancellation_while_evaluating(server, project, era):
    async with Client(server, **ERAS[era]) as client:
        evaluating = anyio.Event()

        async def on_progress(done, total, message):
            if message.startswith("evaluate: iteration"):
                evaluating.set()

        async def check():
            await client.call_tool(
                "gradcheck_full_horizon",
                {"script": "slow.py", "python": sys.executable},
                progress_callback=on_progress,
            )

        async with anyio.create_task_group() as group:
            group.start_soon(check)
            with anyio.fail_after(60):
                await evaluating.wait()
            assert probes(project)
            group.cancel_scope.cancel()
        await anyio.to_thread.run_sync(wait_until_none, project)
        after = await client.call_tool("run_repro", {"script": f"{BROKEN}.py", "python": sys.executable})
        assert after.structured_content["status"] == "completed"
    assert not probes(project)


async def test_another_projects_client(server):
    import fastmcp

    transport = fastmcp.client.transports.StdioTransport(server.command, server.args, env=server.env)
    async with fastmcp.Client(transport) as client:
        target = {"script": f"{BROKEN}.py", "python": sys.executable}
        seen = await client.call_tool("run_repro", target)
        assert seen.data.status == "completed"
        checked = await client.call_tool("gradcheck_full_horizon", target)
        assert checked.data.verdict == "disagree"
        assert json.loads(json.dumps(checked.structured_content))["verdict"] == "disagree"


def probes(project):
    """Live processes that measure in this workspace: the probe and its forks share their command line."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words = process.info["cmdline"] or []
        if (
            process.info["status"] != psutil.STATUS_ZOMBIE
            and any("bootstrap.py" in w for w in words)
            and any(str(project) in w for w in words)
        ):
            found.append(process)
    return found


def wait_until_none(project, seconds=10.0):
    """No process may be left."""
    left = probes(project)
    psutil.wait_procs(left, timeout=seconds)
    assert not probes(project)


async def test_a_second_call_takes_over_the_first_ones_trace(server, project):
    """While nothing that the program reads has changed; the answer says so, and the numbers are of the call itself."""
    file = project / f"{RIGHT}.py"
    arguments = {"script": file.name, "python": sys.executable, "detail": "full", "timeout_s": 200}
    async with Client(server) as client:

        async def notes(tool):
            answer = await client.call_tool(tool, arguments)
            result = answer.structured_content
            evidence = project / result["evidence"]
            assert json.loads((evidence / "trace.json").read_text())["status"] == "completed"
            assert (evidence / "output.txt").stat().st_size > 0
            return result["run_id"], " ".join(result["notes"])

        first, said = await notes("run_repro")
        assert "not repeated" not in said
        _, said = await notes("gradcheck_full_horizon")
        assert f"was not repeated: it is that of {first}" in said
        file.write_text(file.read_text() + "\n# edited\n")
        _, said = await notes("gradcheck_full_horizon")
        assert "not repeated" not in said

"""The real server over stdio, driven by the SDK's client in both protocol eras, and by clients that are not ours."""

import json
import os
import subprocess
import sys

import anyio
import pytest
from mcp import Client, StdioServerParameters

pytestmark = pytest.mark.anyio
ERAS = {"modern": {}, "legacy": {"mode": "legacy"}}
TOOLS = [
    "run_repro", "diagnose", "gradcheck_full_horizon", "enable_tracker", "bisect_steps", "scan_patterns", "verify_fix",
]  # fmt: skip


@pytest.fixture
def server(project, fakes):
    """How a host starts the server (with the stand-in probe)."""
    environment = {
        "WARP_DEBUG_GRADIENTS_WORKSPACE": str(project),
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        "PATH": os.environ["PATH"],
    }
    return StdioServerParameters(command=sys.executable, args=[str(fakes / "command.py"), "serve"], env=environment)


@pytest.mark.parametrize("era", ERAS)
async def test_a_session(server, project, era):
    async with Client(server, **ERAS[era]) as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == TOOLS

        progress = []

        async def on_progress(done, total, message):
            progress.append((done, total, message))

        result = await client.call_tool("gradcheck_full_horizon", {"script": "wrong.py"}, progress_callback=on_progress)
        assert not result.is_error
        assert result.content[0].text.startswith("DISAGREE")
        assert result.structured_content["verdict"] == "disagree"
        assert progress[0][2] == "trace: starting"
        assert all(later[0] >= earlier[0] for earlier, later in zip(progress, progress[1:]))

        failing = await client.call_tool("run_repro", {"script": "broken.py", "args": ["-v"], "overrides": {"a.B": 1}})
        assert not failing.is_error  # the user's program failed, the tool did not
        assert failing.structured_content["status"] == "blocked"

        for arguments, text in [
            ({"scirpt": "wrong.py"}, "Did you mean 'script'?"),
            ({"script": "wrong.py", "iteration": -1}, "greater than or equal to 0"),
            ({"script": "../wrong.py"}, "outside the workspace"),
            ({"script": "wrong.py", "python": "/bin/sh"}, "serve --python"),
            ({"script": "missing.py"}, "no script missing.py"),
            ({}, "exactly one target"),
            ({"script": "wrong.py", "args": "-v"}, "args: Input should be a valid list"),
            ({"script": "wrong.py", "detail": "long"}, "one of concise, full"),
        ]:
            refused = await client.call_tool("gradcheck_full_horizon", arguments)
            assert refused.is_error
            assert text in refused.content[0].text
            assert "Traceback" not in refused.content[0].text
        unknown = await client.call_tool("gradcheck", {})
        assert unknown.is_error
        assert "Did you mean gradcheck_full_horizon?" in unknown.content[0].text


async def test_arguments_as_some_clients_send_them(server):
    """Lists and objects as strings of JSON, null for what is left out."""
    async with Client(server) as client:
        written = {"script": "right.py", "args": '["-v"]', "overrides": '{"a.B": 1}', "module": None, "device": "null"}
        result = await client.call_tool("run_repro", written)
        assert not result.is_error, result.content[0].text
        assert result.structured_content["status"] == "completed"


@pytest.mark.parametrize("era", ERAS)
async def test_cancellation_ends_the_script(server, project, is_gone, era):
    async with Client(server, **ERAS[era]) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "run_repro", {"script": "hang.py"})
            pids = await _pids(project)
            group.cancel_scope.cancel()
        assert all([await anyio.to_thread.run_sync(is_gone, pid) for pid in pids])
        after = await client.call_tool("run_repro", {"script": "right.py"})
        assert after.structured_content["status"] == "completed"


async def test_ending_the_server_ends_the_script(server, project, is_gone):
    process = subprocess.Popen(
        [server.command, *server.args], env=server.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    _handshake(process)
    _send(process, 2, "tools/call", {"name": "run_repro", "arguments": {"script": "hang.py"}})
    pids = await _pids(project)
    process.terminate()
    await anyio.to_thread.run_sync(process.wait)
    process.stdin.close()
    process.stdout.close()
    assert all([await anyio.to_thread.run_sync(is_gone, pid) for pid in pids])


@pytest.mark.parametrize("version", ["2024-11-05", "2025-11-25"])
async def test_hand_written_json_rpc(server, project, version):
    process = subprocess.Popen(
        [server.command, *server.args], env=server.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    answer = _handshake(process, version)
    assert answer["result"]["protocolVersion"] == version
    assert answer["result"]["serverInfo"]["name"] == "warp-debug-gradients"
    _send(process, 2, "tools/list", {})
    tools = _receive(process, 2)["result"]["tools"]
    assert [tool["name"] for tool in tools] == TOOLS
    assert all(tool["inputSchema"]["additionalProperties"] is False for tool in tools)
    _send(process, 3, "tools/call", {"name": "gradcheck_full_horizon", "arguments": {"script": "right.py"}})
    result = _receive(process, 3)["result"]
    assert result["isError"] is False
    assert result["structuredContent"]["verdict"] == "agree"
    rest, _ = process.communicate()
    assert rest.strip() == b""  # nothing but protocol on stdout
    assert process.returncode == 0


async def test_another_projects_client(server):
    """fastmcp's client builds typed objects from our output schema."""
    import fastmcp

    transport = fastmcp.client.transports.StdioTransport(server.command, server.args, env=server.env)
    async with fastmcp.Client(transport) as client:
        assert [tool.name for tool in await client.list_tools()] == TOOLS
        result = await client.call_tool("gradcheck_full_horizon", {"script": "wrong.py"})
        assert result.data.verdict == "disagree"
        assert result.data.gradient.autodiff == pytest.approx(-0.238)


async def test_the_list_of_tools_is_short(capsys):
    """What every conversation pays for: the names, descriptions and arguments (clients keep result schemas to themselves)."""
    from warp_debug_gradients.app import mcp

    tools = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in await mcp.list_tools()]
    sizes = {
        tool["name"]: len(json.dumps({k: v for k, v in tool.items() if k != "outputSchema"})) // 4 for tool in tools
    }
    with capsys.disabled():
        print(f"\ntokens (a quarter of the characters): {sizes}, together {sum(sizes.values())}")
    assert len(tools) <= 9
    assert sum(sizes.values()) < 4000


@pytest.mark.parametrize("name", TOOLS)
async def test_the_published_contract(name, request):
    """A changed schema or description shows in review. UPDATE_SNAPSHOTS=1 writes it anew."""
    from warp_debug_gradients.app import mcp

    (tool,) = [tool for tool in await mcp.list_tools() if tool.name == name]
    published = tool.model_dump(mode="json", by_alias=True, exclude_none=True)
    snapshot = request.path.parent / "snapshots" / f"{name}.json"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        snapshot.write_text(json.dumps(published, indent=1, sort_keys=True) + "\n")
    assert published == json.loads(snapshot.read_text())

    assert published["inputSchema"]["additionalProperties"] is False
    (first,) = [tool for tool in await mcp.list_tools() if tool.name == "diagnose"]
    explained = {k for k, field in first.input_schema["properties"].items() if "description" in field}
    assert all(k in explained or "description" in v for k, v in published["inputSchema"]["properties"].items())
    assert not any(line.startswith(" ") for line in published["description"].splitlines())
    assert len(published["description"]) < 2000
    hints = {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
    assert hints <= set(published["annotations"])


async def _pids(project):
    for _ in range(600):
        if (project / "pids").exists() and len(found := (project / "pids").read_text().split()) == 3:
            return [int(pid) for pid in found]
        await anyio.sleep(0.05)
    raise AssertionError("the script never started")


def _send(process, identity, method, parameters):
    message = {"jsonrpc": "2.0", "method": method, "params": parameters}
    if identity is not None:
        message["id"] = identity
    process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()


def _receive(process, identity):
    while True:
        message = json.loads(process.stdout.readline())
        if message.get("id") == identity:
            return message


def _handshake(process, version="2025-11-25"):
    client = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "by hand", "version": "1"}}
    _send(process, 1, "initialize", client)
    answer = _receive(process, 1)
    _send(process, None, "notifications/initialized", {})
    return answer


async def test_the_ledger_comes_with_its_picture(server):
    async with Client(server) as client:
        result = await client.call_tool("bisect_steps", {"script": "wrong.py"})
        assert [item.type for item in result.content] == ["text", "image"]
        assert result.content[1].mime_type == "image/png"
        assert len(result.content[1].data) < 200_000
        assert result.structured_content["jumps"][0]["kernel"] == "diffuse"
        tracked = await client.call_tool("enable_tracker", {"script": "wrong.py"})
        assert tracked.structured_content["overwrites"][0]["harmful"] is True
        refused = await client.call_tool("bisect_steps", {"script": "wrong.py", "methd": "knob"})
        assert "Did you mean 'method'?" in refused.content[0].text

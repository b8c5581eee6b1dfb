"""However a call or the server ends, the whole tree of the user's program is gone, within two seconds.

On a busy machine a clock judges the machine. So the tests wait for the event, at most WARP_DEBUG_GRADIENTS_TEST_DEATH_S
seconds (default 60), and print how long it took (pytest -s). The promise of two seconds is measured by hand:

    WARP_DEBUG_GRADIENTS_TEST_DEATH_S=2 pytest -s tests/hostile/test_deaths.py
"""

import json
import os
import signal
import subprocess
import sys
import time

import anyio
import pytest
from mcp import Client, StdioServerParameters

pytestmark = pytest.mark.anyio
WITHIN_S = float(os.environ.get("WARP_DEBUG_GRADIENTS_TEST_DEATH_S", "60"))
TREE = """
import os, signal, subprocess, sys, time
from pathlib import Path

signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:  # a daemon: its parent has ended, its session is its own, its environment is empty
        os.execve(sys.executable, [f"daemon {os.getcwd()}", "-c",
                  "import os, time; open('daemon', 'w').write(str(os.getpid())); time.sleep(600)"], {})
    os.kill(os.getpid(), 9)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
while not Path("daemon").exists():
    time.sleep(0.01)
Path("ready").write_text(str(os.getpid()))
time.sleep(600)
"""


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "tree.py").write_text(TREE)
    (folder / "right.py").write_text("print('all is well')\n")
    return folder


@pytest.fixture
def server(project, tmp_path):
    """How a host starts it."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        "WARP_DEBUG_GRADIENTS_WORKSPACE": str(project),
        "WARP_TEST_FOLDER": str(tmp_path),
    }
    command = [sys.executable, "-m", "warp_debug_gradients", "serve"]
    return StdioServerParameters(command=command[0], args=command[1:], env=environment)


@pytest.fixture
def raw_server(server):
    """The server's process with a call in flight, without a client in between."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # a server started under nohup is meant to ignore it
    process = subprocess.Popen(
        [server.command, *server.args], env=server.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    signal.signal(signal.SIGHUP, before)
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "by hand", "version": "1"}}
    call = {"name": "run_repro", "arguments": {"script": "tree.py", "python": sys.executable}}
    for message in (
        {"id": 1, "method": "initialize", "params": client},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": call},
    ):
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    process.stdin.flush()
    yield process
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


async def ready(project):
    """Waits until the program's tree stands: the probe, a child and a daemon."""
    with anyio.fail_after(90):
        while not (project / "ready").exists():
            await anyio.sleep(0.05)


async def gone(processes_of, how, keep=()):
    """Waits until nothing of the tree lives."""
    began = time.monotonic()
    while left := [entry for entry in processes_of() if entry[0] not in keep]:
        assert time.monotonic() < began + WITHIN_S, left
        await anyio.sleep(0.02)
    print(f"\n{how}: gone after {time.monotonic() - began:.2f} s")


@pytest.mark.parametrize("death", ["SIGTERM", "SIGKILL", "stdin ends", "SIGHUP"])
async def test_the_server_dies(raw_server, project, processes_of, death):
    await ready(project)
    assert len(processes_of()) >= 4  # server, guardian, program, daemon, ...
    if death == "stdin ends":
        raw_server.stdin.close()
    else:
        raw_server.send_signal(getattr(signal, death))
    await gone(processes_of, death)


@pytest.mark.parametrize("end", ["cancelled by the client", "the client's time-out"])
async def test_the_call_ends(server, project, processes_of, end):
    arguments = {"script": "tree.py", "python": sys.executable}
    async with Client(server) as client:
        mine = {entry[0] for entry in processes_of() if "serve" in entry[1]}
        if end == "cancelled by the client":
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "run_repro", arguments)
                await ready(project)
                group.cancel_scope.cancel()
        else:
            async with anyio.create_task_group() as group:

                async def call():
                    with pytest.raises(Exception, match="(?i)timed? ?out"):
                        await client.call_tool("run_repro", arguments, read_timeout_seconds=8)

                group.start_soon(call)
                await ready(project)
        await gone(processes_of, end, keep=mine)
        after = await client.call_tool("run_repro", {"script": "right.py", "python": sys.executable})
        assert after.structured_content["status"] == "completed"  # the server lives on


async def test_the_command_is_interrupted(project, processes_of):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-m", "warp_debug_gradients", "run-repro", "tree.py", "--python", sys.executable]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        (project / "ready").unlink(missing_ok=True)
        (project / "daemon").unlink(missing_ok=True)
        process = subprocess.Popen(command, cwd=project, env=environment, stderr=subprocess.DEVNULL)
        await ready(project)
        process.send_signal(number)
        await gone(processes_of, f"the command gets {number.name}")
        assert process.wait() in (130, -9)

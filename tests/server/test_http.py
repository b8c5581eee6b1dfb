"""serve --http: a session, and everybody who must be refused."""

import os
import socket
import subprocess
import sys
import time

import httpx2 as httpx
import pytest
from mcp import Client

from warp_debug_gradients.errors import UsageError
from warp_debug_gradients.http_server import http_app, is_loopback

pytestmark = pytest.mark.anyio
TOKEN = "a-token-of-the-test"
PING = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.fixture
def start(project, fakes):
    """Starts the server on a free port; returns its address."""
    started = []

    def run(*options, token=None):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        environment = {**os.environ, "WARP_DEBUG_GRADIENTS_WORKSPACE": str(project)}
        environment["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
        if token:
            environment["WARP_DEBUG_GRADIENTS_TOKEN"] = token
        command = [sys.executable, str(fakes / "command.py"), "serve", "--http", "--port", str(port), *options]
        process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        started.append(process)
        for line in process.stderr:
            if line.startswith("Serving on"):
                break
        for _ in range(400):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return f"http://127.0.0.1:{port}/mcp"
            time.sleep(0.05)
        raise AssertionError("it never listened")

    yield run
    for process in started:
        process.terminate()
        assert process.wait(15) is not None
        process.stderr.close()


async def test_a_session_on_this_machine(start):
    address = start()
    async with Client(address) as client:
        result = await client.call_tool("gradcheck_full_horizon", {"script": "wrong.py"})
        assert result.structured_content["verdict"] == "disagree"

    def ask(**headers):
        return httpx.post(address, json=PING, headers={**ACCEPT, **headers}).status_code

    assert ask() == 200
    assert ask(Host="evil.example") in (403, 421)  # a name that was bound to this address later
    assert ask(Origin="https://evil.example") == 403  # a web page
    assert ask(Origin=address.removesuffix("/mcp")) == 200


async def test_a_token_where_one_is_set(start):
    address = start("--host", "0.0.0.0", "--name", "box.example", token=TOKEN)

    def ask(**headers):
        host = {"Host": "box.example"}
        return httpx.post(address, json=PING, headers={**ACCEPT, **host, **headers}).status_code

    assert ask() == 401
    assert ask(Authorization="Bearer wrong") == 401
    assert ask(Authorization=f"Basic {TOKEN}") == 401
    assert ask(Authorization=f"Bearer {TOKEN}") == 200


def test_it_does_not_start_open_to_others():
    with pytest.raises(UsageError, match="WARP_DEBUG_GRADIENTS_TOKEN"):
        http_app("0.0.0.0", [], None)
    with pytest.raises(UsageError, match="--name"):
        http_app("0.0.0.0", [], TOKEN)
    with pytest.raises(UsageError, match="at least 16"):
        http_app("127.0.0.1", [], "short")


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "[::1]", "localhost", "127.1.2.3"])
def test_addresses_of_this_machine(host):
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "example.org", "localhost.example.org"])
def test_addresses_that_others_reach(host):
    assert not is_loopback(host)

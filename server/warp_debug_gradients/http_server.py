"""The MCP server over streamable HTTP: this machine only, unless a token protects it.

Whoever can reach it can run the workspace's scripts. So it listens on the loopback interface by default, answers
only to host names and origins that it knows (a web page in a browser on this machine is no client), and asks for
a bearer token where one is set; elsewhere than on the loopback interface it does not start without one.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import sys
from collections.abc import Sequence

from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from warp_debug_gradients.app import mcp
from warp_debug_gradients.errors import UsageError

TOKEN = "WARP_DEBUG_GRADIENTS_TOKEN"
SHORTEST_TOKEN = 16
PATH = "/mcp"
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


def serve_http(host: str, port: int, names: Sequence[str] = ()) -> None:
    """Serves until told to go. `names`: what clients call this machine, where it is reached under other names."""
    import uvicorn

    app = http_app(host, names, os.environ.get(TOKEN))
    print(f"Serving on http://{host}:{port}{PATH}", file=sys.stderr, flush=True)
    uvicorn.run(app, host=host, port=port, log_level="warning", timeout_graceful_shutdown=1)


def http_app(host: str, names: Sequence[str], token: str | None) -> ASGIApp:
    """The application, with its checks in front."""
    if token is not None and len(token) < SHORTEST_TOKEN:
        raise UsageError(
            f"{TOKEN} should have at least {SHORTEST_TOKEN} characters, such as `openssl rand -hex 16` gives."
        )
    if not is_loopback(host) and token is None:
        raise UsageError(
            f"--host {host} can be reached from other machines, and whoever reaches it runs scripts here. Set {TOKEN} "
            "to a secret that clients send as a bearer token, or leave --host out."
        )
    if host in ("0.0.0.0", "::", "[::]") and not names:
        raise UsageError(f"--host {host} means every address: say with --name which names or addresses clients use.")
    known = [*LOOPBACK_NAMES, *names] if is_loopback(host) else [host, *names]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[entry for name in known for entry in (name, f"{name}:*")],
        allowed_origins=[f"{scheme}://{name}:*" for name in known for scheme in ("http", "https")],
    )
    app = mcp.streamable_http_app(streamable_http_path=PATH, transport_security=security, host=host)
    return app if token is None else BearerToken(app, token)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


class BearerToken:
    """Refuses every request without the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app = app
        self.expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, self.expected):
                refusal = PlainTextResponse(
                    "A bearer token is needed.\n", status_code=401, headers={"WWW-Authenticate": "Bearer"}
                )
                await refusal(scope, receive, send)
                return
        await self.app(scope, receive, send)

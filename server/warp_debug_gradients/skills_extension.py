"""Skills over MCP (SEP-2640): a client asks `skills/list` and finds the runbook, with a digest of each file.

Spoken in the protocol's modern era only. In older ones the same files are ordinary resources (resources.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from mcp.server.extension import Extension, MethodBinding
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, PaginatedRequestParams, RequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from warp_debug_gradients import skill

FRESH_MS = 60_000  # how long a client may keep an answer


class GetSkillParams(RequestParams):
    """Parameters of skills/get."""

    uri: str


class SkillsExtension(Extension):
    """Our one skill."""

    identifier = "io.modelcontextprotocol/skills"

    def methods(self) -> Sequence[MethodBinding]:
        """The two requests of the extension."""
        modern = frozenset(MODERN_PROTOCOL_VERSIONS)
        return (
            MethodBinding("skills/list", PaginatedRequestParams, self._list, modern),
            MethodBinding("skills/get", GetSkillParams, self._get, modern),
        )

    async def _list(self, context: Any, params: PaginatedRequestParams) -> dict[str, Any]:
        return {"skills": [entry()], **_COMPLETE}

    async def _get(self, context: Any, params: GetSkillParams) -> dict[str, Any]:
        if params.uri != skill.TEXTS[0].uri:
            raise MCPError(INVALID_PARAMS, f"No such skill: {params.uri}", {"uri": params.uri})
        return {"skill": entry(), **_COMPLETE}


_COMPLETE = {"resultType": "complete", "ttlMs": FRESH_MS, "cacheScope": "public"}


def entry() -> dict[str, Any]:
    """The skill as its list has it: address, front matter, and every file with its digest."""
    return {"uri": skill.TEXTS[0].uri, "frontmatter": skill.front_matter(), "resources": [*map(_file, skill.files())]}


def _file(path: str) -> dict[str, Any]:
    content = skill.read(path).encode()
    return {
        "uri": f"skill://{skill.NAME}/{path}",
        "digest": f"sha256:{hashlib.sha256(content).hexdigest()}",
        "size": len(content),
    }

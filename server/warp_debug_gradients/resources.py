"""The skill over MCP: its texts as resources, and one prompt that starts the runbook."""

from __future__ import annotations

from functools import partial

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp.server.mcpserver.resources import FunctionResource

from warp_debug_gradients import skill

MARKDOWN = "text/markdown"


def publish_skill(server: MCPServer) -> None:
    """Every text of the skill as a resource, the examples by a template, and the prompt `debug_gradients`."""
    for text in skill.TEXTS:
        server.add_resource(
            FunctionResource.from_function(
                fn=partial(skill.read, text.path),
                uri=text.uri,
                name=text.path,
                title=text.title,
                description=text.description,
                mime_type=MARKDOWN,
            )
        )
    server.resource(
        f"skill://{skill.NAME}/examples/{{folder}}/{{file}}",
        name="examples",
        title="Examples",
        description="A file of an example, such as examples/buffer_reuse/broken.py. Each folder has a README.md.",
        mime_type="text/plain",
    )(_example)
    server.prompt(
        name="debug_gradients",
        title="Debug the gradients of a Warp program",
        description="Starts the runbook: measure first, then signature, cause, repair, proof.",
    )(_debug_gradients)


def _example(folder: str, file: str) -> str:
    """A file of an example."""
    path = f"examples/{folder}/{file}"
    try:
        return skill.read(path)
    except KeyError as error:
        raise ResourceNotFoundError(f"no such file of an example: {path}") from error


def _debug_gradients(script: str = "", complaint: str = "") -> str:
    """The runbook, with what the user has said."""
    said = [f"The script is {script}." if script else "", f"The complaint: {complaint}" if complaint else ""]
    known = " ".join(part for part in said if part) or "Ask for the script and the complaint if they are not known."
    return (
        "Find out with measurements whether this Warp program's gradients are right, and if not, why. "
        f"{known}\nFollow the runbook below; its references are resources beside it ({skill.TEXTS[0].uri}).\n\n"
        f"{skill.read(skill.RUNBOOK)}"
    )

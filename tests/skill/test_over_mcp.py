"""The skill through the MCP server: resources, the examples' template, the prompt, and as a skill (SEP-2640)."""

import hashlib

import blocks
import pytest
import yaml
from fastmcp.skills.models import (
    GetSkillParams,
    GetSkillRequest,
    GetSkillResult,
    ListSkillsParams,
    ListSkillsRequest,
    ListSkillsResult,
)
from mcp import Client, MCPError

from warp_debug_gradients import skill
from warp_debug_gradients.app import mcp

pytestmark = pytest.mark.anyio
ERAS = {"modern": {}, "legacy": {"mode": "legacy"}}


@pytest.mark.parametrize("era", ERAS)
async def test_resources(era):
    async with Client(mcp, **ERAS[era]) as client:
        listed = {str(r.uri): r for r in (await client.list_resources()).resources}
        for text in skill.TEXTS:
            assert listed[text.uri].mime_type == "text/markdown"
            (content,) = (await client.read_resource(text.uri)).contents
            assert content.text == (blocks.ROOT / text.path).read_text()
        example = f"skill://{skill.NAME}/examples/buffer_reuse/broken.py"
        (content,) = (await client.read_resource(example)).contents
        assert content.text == (blocks.ROOT / "examples/buffer_reuse/broken.py").read_text()
        for wrong in ("examples/none/broken.py", "examples/buffer_reuse/truth_broken.json", "pyproject.toml"):
            with pytest.raises(MCPError):
                await client.read_resource(f"skill://{skill.NAME}/{wrong}")


@pytest.mark.parametrize("era", ERAS)
async def test_prompt(era):
    async with Client(mcp, **ERAS[era]) as client:
        (prompt,) = (await client.list_prompts()).prompts
        assert prompt.name == "debug_gradients"
        asked = await client.get_prompt(prompt.name, {"script": "train.py", "complaint": "the loss creeps up"})
        text = asked.messages[0].content.text
        assert "train.py" in text
        assert "the loss creeps up" in text
        assert (blocks.ROOT / "SKILL.md").read_text() in text


async def test_as_a_skill():
    """By fastmcp's own models of the extension, which refuse an entry that does not conform; every digest is right."""

    def get(uri):
        return GetSkillRequest(params=GetSkillParams(uri=uri))

    async with Client(mcp) as client:
        assert "io.modelcontextprotocol/skills" in (client.server_capabilities.extensions or {})
        asked = client.session.send_request
        (entry,) = (await asked(ListSkillsRequest(params=ListSkillsParams()), ListSkillsResult)).skills
        assert entry.frontmatter.root == yaml.safe_load((blocks.ROOT / "SKILL.md").read_text().split("---\n")[1])
        assert {f"skill://{skill.NAME}/{path}" for path in skill.files()} == {r.uri for r in entry.resources}
        assert (await asked(get(entry.uri), GetSkillResult)).skill == entry
        for file in entry.resources:
            (content,) = (await client.read_resource(file.uri)).contents
            sent = content.text.encode()
            assert (file.digest, file.size) == (f"sha256:{hashlib.sha256(sent).hexdigest()}", len(sent)), file.uri
        with pytest.raises(MCPError, match="No such skill"):
            await asked(get("skill://other/SKILL.md"), GetSkillResult)

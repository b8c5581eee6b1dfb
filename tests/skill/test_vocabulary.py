"""Texts and code use one vocabulary: cause codes, sections, tools, commands, options, arguments, reasons."""

import asyncio
import json
import re
import shlex

import blocks
import pytest
import typer

from warp_debug_gradients.app import mcp
from warp_debug_gradients.catalogue import CATALOGUE
from warp_debug_gradients.cli import app

TEXTS = {file: (blocks.ROOT / file).read_text() for file in blocks.TEXTS}
EVERYTHING = "\n".join(TEXTS.values())
QUICK_CHECKS = TEXTS["references/quick-checks.md"]
HEADING = re.compile(r"^## §(\w+) (.*)$", re.MULTILINE)
SECTIONS = {kind.section for kind in CATALOGUE.values()}
TOOLS = {tool.name: tool for tool in asyncio.run(mcp.list_tools())}
COMMANDS = typer.main.get_command(app).commands
PARTS = ("Looks like", "Benign", "Confirm", "Repair", "Read")
NOT_BUGS = {"11", "12", "12b"}  # version notes, and what is no fault of a gradient


def bodies():
    """{section: its text}."""
    found = list(HEADING.finditer(QUICK_CHECKS))
    ends = [m.start() for m in found[1:]] + [len(QUICK_CHECKS)]
    return {m.group(1): " ".join(QUICK_CHECKS[m.end() : end].split()) for m, end in zip(found, ends)}


def test_every_cause_has_its_section():
    headings = dict(HEADING.findall(QUICK_CHECKS))
    assert headings == {kind.section: code for code, kind in CATALOGUE.items()}
    assert list(headings) == sorted(headings, key=lambda s: (int(re.match(r"\d+", s).group()), s))


@pytest.mark.parametrize("code", CATALOGUE)
def test_sections_have_their_parts(code):
    kind = CATALOGUE[code]
    body = bodies()[kind.section]
    document, _, part = kind.documentation.partition(": ")
    assert document in body
    assert part in body
    if kind.section not in NOT_BUGS:
        for part in PARTS:
            assert f"**{part}**" in body, part


def test_sections_named_in_the_texts_exist():
    mentioned = set(re.findall(r"§(\d+[a-z]?)", EVERYTHING))
    assert mentioned <= SECTIONS
    assert SECTIONS - {"9d", "9e"} <= set(re.findall(r"§(\d+[a-z]?)", TEXTS["SKILL.md"])) | mentioned


def test_tools_and_their_arguments():
    looks_like_ours = (
        r"`((?:run|enable|gradcheck|bisect|scan|verify)_(?:repro|tracker|full_horizon|steps|patterns|fix)\w*)"
    )
    mentioned = set(re.findall(looks_like_ours, EVERYTHING))
    assert mentioned <= set(TOOLS)
    assert set(TOOLS) <= set(re.findall(r"`(\w+)[ `]", TEXTS["SKILL.md"]))
    for name, arguments in re.findall(r"`(\w+) (\{.*?\})`", EVERYTHING):
        if name in TOOLS:
            given = json.loads(re.sub(r": ([A-Z_]+)", r': "\1"', arguments))
            assert set(given) <= set(TOOLS[name].input_schema["properties"]), name


def command_lines():
    for file, text in TEXTS.items():
        inline = re.findall(r"`(?!warp-)([a-z]+-[a-z-]+ [^`\n]*)`", text)
        inline += re.findall(r"`warp-debug-gradients ([a-z][^`\n]*)`", text)
        fenced = re.findall(r"^warp-debug-gradients (.*)$", text, re.MULTILINE)
        for line in (*inline, *fenced):
            yield file, line


@pytest.mark.parametrize(("file", "line"), sorted(set(command_lines())))
def test_commands_and_options(file, line):
    name, *words = shlex.split(line)
    options = {option for parameter in COMMANDS[name].params for option in parameter.opts}
    for word in words:
        if word.startswith("--") and word != "--":
            assert word.partition("=")[0] in options, word


def test_options_named_by_themselves():
    options = {option for command in COMMANDS.values() for parameter in command.params for option in parameter.opts}
    own = {"--full", "--baseline"}  # the example's, and that of verify-fix
    for file, text in TEXTS.items():
        for option in re.findall(r"`(--[a-z-]+)", text):
            assert option in options | own, (file, option)


def test_codes_of_verdicts_and_observations_exist_in_the_probe():
    sources = "\n".join(p.read_text() for p in (blocks.ROOT / "server/warp_debug_gradients").rglob("*.py"))
    named = re.findall(r"reason `(\w+)`", EVERYTHING)
    named += re.findall(r"observations? `(\w+)`", EVERYTHING) + re.findall(
        r"(?:kind|signature|term) `(\w+)`", EVERYTHING
    )
    assert {"kink", "staircase", "quantised"} <= set(named)
    for code in named:
        assert f'"{code}"' in sources or f"{code}:" in sources, code

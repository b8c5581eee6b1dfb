"""Every snippet of the installation pages starts the server; `install` keeps what is there and undoes itself."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from warp_debug_gradients import __version__
from warp_debug_gradients.errors import UsageError
from warp_debug_gradients.operations.install import CLIENTS, NAME, plan

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "install").glob("*.md"))
HERE = os.pathsep.join(p for p in sys.path if p)
OTHERS = {"mcpServers": {"other": {"command": "x"}}, "servers": {"other": {"command": "x"}}, "kept": [1, "é"]}


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A checkout with its environment, an `uv`, and a project, as the pages assume them."""
    checkout, project = tmp_path / "checkout", tmp_path / "project"
    project.mkdir()
    program = checkout / ".venv" / "bin" / NAME
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nPYTHONPATH={HERE} exec {sys.executable} -m warp_debug_gradients "$@"\n')
    uv = tmp_path / "bin" / "uv"  # `uv run --quiet --project CHECKOUT COMMAND ...`
    uv.parent.mkdir()
    uv.write_text('#!/bin/sh\n[ "$1 $2 $3" = "run --quiet --project" ] || exit 9\nbin="$4/.venv/bin"; shift 4\n'
                  'program="$1"; shift; exec "$bin/$program" "$@"\n')  # fmt: skip
    for file in (program, uv):
        file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{uv.parent}{os.pathsep}{os.environ['PATH']}")
    return checkout, project


async def starts(configuration, key, machine):
    """Starts the one server of a configuration as its client would, and asks for its tools."""
    checkout, project = machine
    text = json.dumps(configuration).replace("/path/to/warp-debug-gradients", str(checkout))
    for variable in ("CLAUDE_PLUGIN_ROOT", "CLAUDE_PROJECT_DIR", "workspaceFolder"):
        text = text.replace(f"${{{variable}}}", str(checkout if "PLUGIN" in variable else project))
    assert "${" not in text
    server = json.loads(text)[key][NAME]
    environment = {"PATH": os.environ["PATH"], **server.get("env", {})}
    parameters = StdioServerParameters(
        command=server["command"], args=server["args"], env=environment, cwd=str(project)
    )
    async with Client(parameters) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        refused = await client.call_tool("run_repro", {"script": "missing.py"})
    assert "gradcheck_full_horizon" in names
    assert str(project) in refused.content[0].text  # that is the workspace


@pytest.mark.anyio
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
async def test_the_snippet_of_a_page(page, machine):
    ((language, snippet),) = re.findall(r"```(json|toml)\n(.*?)```", page.read_text(), re.DOTALL)
    configuration = json.loads(snippet) if language == "json" else tomllib.loads(snippet)
    (key,) = configuration
    await starts(configuration, key, machine)


@pytest.mark.anyio
async def test_the_plugin(machine):
    plugin = json.loads((ROOT / ".claude-plugin" / "plugin.json").read_text())
    market = json.loads((ROOT / ".claude-plugin" / "marketplace.json").read_text())
    assert plugin["version"] == __version__
    assert [(entry["name"], entry["source"]) for entry in market["plugins"]] == [(plugin["name"], "./")]
    await starts(plugin, "mcpServers", machine)


def test_the_registry_entry():
    entry = json.loads((ROOT / "server.json").read_text())
    (package,) = entry["packages"]
    assert entry["version"] == package["version"] == __version__
    assert len(entry["description"]) <= 100
    assert package["identifier"] == NAME


@pytest.mark.anyio
@pytest.mark.parametrize("client", CLIENTS)
async def test_what_install_writes_starts_the_server(client, machine, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", HERE)
    plan(client, machine[1]).apply()
    path = machine[1] / CLIENTS[client].project
    read = tomllib.loads if path.suffix == ".toml" else json.loads
    await starts(read(path.read_text()), CLIENTS[client].key, machine)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("present", [True, False])
def test_it_keeps_what_is_there_and_undoes_itself(client, present, tmp_path):
    path = tmp_path / CLIENTS[client].user
    before = None
    if present:
        toml = '# mine\nmodel = "m"\n\n[mcp_servers.other]\ncommand = "x"\n'
        before = toml if path.suffix == ".toml" else json.dumps(OTHERS, indent=4, ensure_ascii=False) + "\n"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(before)
    change = plan(client, None, home=tmp_path)
    assert NAME in change.diff
    assert not any(line.startswith("-") for line in change.diff.splitlines()[2:] if "}" not in line)
    change.apply()
    assert ("other" in path.read_text()) is present
    again = plan(client, None, home=tmp_path)
    assert again.after == again.before  # twice is once
    plan(client, None, home=tmp_path, undo=True).apply()
    assert (path.read_text() if path.exists() else None) == before


def test_what_it_cannot_read_it_leaves_alone(tmp_path):
    path = tmp_path / ".vscode" / "mcp.json"
    path.parent.mkdir()
    path.write_text('{ // comments\n "servers": {} }')
    with pytest.raises(UsageError, match="Add this by hand") as refusal:
        plan("vscode", tmp_path)
    assert '"servers"' in refusal.value.message
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "config.toml").write_text(f"[mcp_servers.{NAME}]\ncommand = 'mine'\n")
    with pytest.raises(UsageError, match="not written"):
        plan("codex", tmp_path)


def test_the_command_asks_first(tmp_path):
    environment = {**os.environ, "PYTHONPATH": HERE}
    command = [sys.executable, "-m", "warp_debug_gradients", "install", "--client", "cursor", "--project"]

    def run(*options):
        return subprocess.run(
            [*command, *options], cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False,
        )  # fmt: skip

    asked = run()
    assert asked.returncode == 2
    assert f'+    "{NAME}": {{' in asked.stdout
    assert list(tmp_path.iterdir()) == []
    assert run("--yes").returncode == 0
    assert (tmp_path / ".cursor" / "mcp.json").exists()
    assert run("--yes", "--undo").returncode == 0
    assert not (tmp_path / ".cursor" / "mcp.json").exists()

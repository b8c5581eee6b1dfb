"""install: puts the server into a client's configuration, keeps what is there, and takes it out again."""

from __future__ import annotations

import difflib
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warp_debug_gradients.errors import UsageError
from warp_debug_gradients.records import part

NAME = "warp-debug-gradients"
SOURCE_ROOT = Path(__file__).resolve().parents[2]
BEGIN, END = f"# >>> {NAME}", f"# <<< {NAME}"


@dataclass(frozen=True)
class Client:
    """Where a client keeps its servers."""

    key: str  # of the map of servers
    project: str  # relative to the project
    user: str  # relative to the home folder
    workspace: str | None = None  # what the client puts in for the project's folder, where it does not start us there
    extra: tuple[tuple[str, Any], ...] = ()


MAC = sys.platform == "darwin"
CLIENTS = {
    "claude": Client("mcpServers", ".mcp.json", ".claude.json"),
    "vscode": Client(
        "servers",
        ".vscode/mcp.json",
        "Library/Application Support/Code/User/mcp.json" if MAC else ".config/Code/User/mcp.json",
        "${workspaceFolder}",
        (("type", "stdio"),),
    ),
    "codex": Client(
        "mcp_servers",
        ".codex/config.toml",
        ".codex/config.toml",
        extra=(("startup_timeout_sec", 60), ("tool_timeout_sec", 600)),
    ),
    "cursor": Client("mcpServers", ".cursor/mcp.json", ".cursor/mcp.json", "${workspaceFolder}"),
}


@dataclass(frozen=True)
class Change:
    """What would be written. `after` is None where the file would go, having held nothing but our entry."""

    path: Path
    before: str | None
    after: str | None

    @property
    def diff(self) -> str:
        """For the user to see first."""
        before, after = (self.before or "").splitlines(), (self.after or "").splitlines()
        return "\n".join(difflib.unified_diff(before, after, str(self.path), str(self.path), lineterm=""))

    def apply(self) -> None:
        """Writes it, whole or not at all."""
        if self.after is None:
            self.path.unlink(missing_ok=True)
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        target = self.path.resolve()  # a link (dotfiles) stays a link
        partial = target.with_name(target.name + ".partial")
        partial.write_text(self.after)
        if target.exists():
            partial.chmod(target.stat().st_mode)
        partial.replace(target)


def plan(client: str, project: Path | None, *, undo: bool = False, home: Path | None = None) -> Change:
    """The change that installs (or takes out) the server; nothing is written yet."""
    described = CLIENTS[client]
    path = project / described.project if project else (home or Path.home()) / described.user
    try:
        before = path.read_text() if path.exists() else None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read ({error}). Nothing was changed.") from error
    edit = _edit_toml if path.suffix == ".toml" else _edit_json
    return Change(path, before, edit(path, before, described, None if undo else entry(described)))


def entry(client: Client) -> dict[str, Any]:
    """How the client starts us: by this very Python."""
    environment = {"WARP_DEBUG_GRADIENTS_WORKSPACE": client.workspace} if client.workspace else {}
    if SOURCE_ROOT in (Path(p).resolve() for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p):
        environment["PYTHONPATH"] = str(SOURCE_ROOT)  # a checkout that is not installed
    described = {**dict(client.extra), "command": sys.executable, "args": ["-m", "warp_debug_gradients", "serve"]}
    return {**described, "env": environment} if environment else described


def _edit_json(path: Path, before: str | None, client: Client, wanted: dict[str, Any] | None) -> str | None:
    try:
        whole: dict[str, Any] = json.loads(before) if before and before.strip() else {}
        servers: dict[str, Any] = whole.setdefault(client.key, {})
        if type(servers) is not dict:
            raise ValueError(f"{client.key} is no map")
    except (ValueError, AttributeError) as error:
        snippet = json.dumps({client.key: {NAME: entry(client)}}, indent=2)
        raise UsageError(
            f"{path} is not plain JSON ({error}); it may have comments. Nothing was changed. Add this by hand:\n{snippet}"
        ) from error
    if wanted is None:
        if NAME not in servers:
            return before
        del servers[NAME]
        if whole == {client.key: {}}:
            return None
        if not servers:
            del whole[client.key]
    else:
        servers[NAME] = wanted
    return json.dumps(whole, indent=_indent(before), ensure_ascii=False) + "\n"


def _indent(before: str | None) -> str:
    """The indentation that the file has."""
    for line in (before or "").splitlines()[1:]:
        if stripped := line.lstrip():
            return line[: -len(stripped)] or "  "
    return "  "


def _edit_toml(path: Path, before: str | None, client: Client, wanted: dict[str, Any] | None) -> str | None:
    """Our table stands between two marks; the rest of the file is not touched."""
    text = before or ""
    if BEGIN in text and END in text:
        first, rest = text.split(BEGIN, 1)
        rest = rest.split(END, 1)[1]
        text = first.rstrip("\n") + ("\n" if first.strip() else "") + rest.lstrip("\n")
    elif wanted is not None and f"[{client.key}.{NAME}]" in text:
        raise UsageError(f"{path} has a table [{client.key}.{NAME}] that we have not written. Remove it first.")
    if wanted is None:
        return text if text.strip() else None
    environment = part(wanted, "env")
    lines = [BEGIN, f"[{client.key}.{NAME}]"]
    lines += [f"{name} = {json.dumps(value)}" for name, value in wanted.items() if name != "env"]
    if environment:
        lines += [f"[{client.key}.{NAME}.env]", *(f"{name} = {json.dumps(v)}" for name, v in environment.items())]
    return (text.rstrip("\n") + "\n\n" if text.strip() else "") + "\n".join([*lines, END]) + "\n"

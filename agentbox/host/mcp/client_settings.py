"""The entry that makes a desktop client start `agentbox mcp`."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import tomli_w

JSON_CLIENTS: Final[Mapping[str, str]] = {
    "claude-desktop": "claude_desktop_config.json",
    "claude-code": ".mcp.json of the project",
    "cursor": "~/.cursor/mcp.json",
    "gemini": "~/.gemini/settings.json",
}
"""The file of each client that has a JSON table `mcpServers`."""
CLIENTS: Final = (*JSON_CLIENTS, "codex")


def client_entry(client: str, command: Sequence[str]) -> tuple[str, str]:
    """The file of that client, and the text to add to it."""
    program, *arguments = command
    entry: dict[str, Any] = {"command": program, "args": arguments}
    if client == "codex":
        return "~/.codex/config.toml", tomli_w.dumps({"mcp_servers": {"agentbox": entry}})
    text = json.dumps({"mcpServers": {"agentbox": entry}}, indent=2, ensure_ascii=False)
    return JSON_CLIENTS[client], f"{text}\n"

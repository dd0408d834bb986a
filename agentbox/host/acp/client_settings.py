"""The entry that makes an editor or another client of ACP start `agentbox acp`."""

import json
from collections.abc import Sequence
from typing import Any, Final

NAME: Final = "agentbox"
CLIENTS: Final = ("zed", "jetbrains", "acpx")
_FILES: Final = {
    "zed": "Zed's settings.json",
    "jetbrains": "~/.jetbrains/acp.json",
    "acpx": "~/.acpx/config.json",
}


def client_entry(client: str, command: Sequence[str]) -> tuple[str, str]:
    """The file of that client, and the text to add to it."""
    if client == "acpx":
        settings: dict[str, Any] = {"agents": {NAME: {"argv": [*command]}}}
    else:
        program, *arguments = command
        of_zed = {"type": "custom"} if client == "zed" else {}
        entry = {**of_zed, "command": program, "args": arguments, "env": {}}
        settings = {"agent_servers": {NAME: entry}}
    return _FILES[client], json.dumps(settings, indent=2, ensure_ascii=False) + "\n"

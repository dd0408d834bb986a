"""What session-host needs of the manifest."""

from collections.abc import Mapping
from typing import Any

from agentbox.agents.config import HostConfig
from agentbox.core.records.plain import to_plain
from agentbox.plan.tables import AgentPlan


def session_config(config: HostConfig) -> Mapping[str, Any]:
    """As `AgentHost.read_session_config`."""
    return {
        "acp": to_plain(config.acp),
        "agents": {
            name: {
                "command": [*_command(table)],
                "acp": to_plain(table.acp),
                "mcp": [*table.mcp],
                "has_preset": bool(table.preset),
            }
            for name, table in config.agents.items()
            if table.enabled and table.protocol == "acp"
        },
        "log_level": config.log_level,
    }


def _command(table: AgentPlan) -> tuple[str, ...]:
    """Its own, else that of its preset which speaks ACP."""
    if table.command or not table.preset:
        return (*table.command, *table.args)
    from agentbox.manifest.features.presets import presets  # a box without presets reads none

    return (*presets()[table.preset].acp_command, *table.args)

"""What all sessions use."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agentbox.contracts.agent_host.port import AgentHost
from agentbox.core.frozen import frozen
from agentbox.plan.tables import AcpPlan, AgentAcpPlan
from agentbox.sessions.store import SessionStore

if TYPE_CHECKING:
    from agentbox.sessions.editors import Editors


@frozen
class SessionAgent:
    """A table in [agents] with `protocol = "acp"`. `command` speaks ACP; `auth`: the id of an
    authentication method, "" for none. `mcp`: names of the MCP servers that it is offered; with a
    preset its own settings name them."""

    name: str
    command: tuple[str, ...]
    auth: str
    acp: AgentAcpPlan
    mcp: tuple[str, ...] = ()
    has_preset: bool = False


@frozen
class SessionsConfig:
    """What the manifest says about sessions. `branches`: the directory of all branches."""

    acp: AcpPlan
    agents: Mapping[str, SessionAgent]
    branches: Path


@dataclass(kw_only=True)
class Environment:
    """`config` returns the values in force: keys are live."""

    host: AgentHost
    store: SessionStore
    config: Callable[[], SessionsConfig]
    editors: "Editors"

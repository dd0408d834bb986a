"""The program session-host as the API uses it."""

from agentbox.client.session_host.connection import (
    NoSessionHost,
    SessionHostConnection,
    session_host_client,
)
from agentbox.contracts.session_host import SessionHost
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan


def session_host_of(plan: Plan, paths: Paths) -> SessionHost:
    """session-host runs where an agent speaks ACP."""
    speaks_acp = any(agent.protocol == "acp" for agent in plan.agents.values())
    return session_host_client(SessionHostConnection(paths) if speaks_acp else NoSessionHost())

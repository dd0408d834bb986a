"""Whose branch an MCP server works in. mcp-host names the agent; agent-host knows whether that one
is offered the server, so that whoever controls mcp-host reaches no branch of another."""

import asyncio
from collections.abc import Mapping

from agentbox.agents.admission.draft import Draft
from agentbox.agents.admission.services import PREFIX, sees_branch
from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.registry.host_state import HostState
from agentbox.agents.review.reviews import uses_branch
from agentbox.agents.runs.agent_runner import AgentRunner
from agentbox.contracts.mcp import AGENT_LABEL, OPERATOR
from agentbox.core.slot_errors import SpawnError


def find_branch_owner(host: HostState, draft: Draft) -> str | None:
    """The id of the agent whose branch the server of that draft sees; None if its row shows none,
    and "" for the server of the operator, which sees an empty folder. Raises SpawnError (stage
    branch)."""
    server = draft.spec.agent.removeprefix(PREFIX)
    if not sees_branch(host.config.mcp_servers[server]):
        return None
    agent_id = draft.spec.labels.get(AGENT_LABEL, "")
    if agent_id == OPERATOR:
        return ""
    entry = host.entries.get(agent_id)
    if entry is None or not _is_working(entry) or server not in entry.grant_set.mcp:
        raise _refusal(draft, "no running agent of that id is offered this server")
    if not uses_branch(entry):
        raise _refusal(draft, f"{entry.spec.name} has no branch")
    return agent_id


def end_with_branch(host: HostState, runners: Mapping[str, AgentRunner]) -> None:
    """From now on the servers in an agent's branch end when its processes have ended, before the
    branch is compared; no further one is admitted then."""

    async def end_users(agent_id: str) -> None:
        users = [one for one in runners.values() if one.entry.branch_of == agent_id]
        await asyncio.gather(*(one.end(0) for one in users))

    host.end_branch_users = end_users


def _is_working(entry: AgentRecord) -> bool:
    """Whether a process of it runs, so that its branch is not compared."""
    return entry.state == "running" and not entry.exit_pending


def _refusal(draft: Draft, reason: str) -> SpawnError:
    return SpawnError(f"cannot start {draft.spec.name}: {reason}", stage="branch")

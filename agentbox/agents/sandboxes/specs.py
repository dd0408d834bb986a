"""What a sandbox is as an agent: its spec, without a program of its own."""

from dataclasses import replace

from agentbox.agents.admission.services import PREFIX
from agentbox.agents.config import HostConfig
from agentbox.agents.errors import invalid
from agentbox.contracts.mcp import SERVER_LABEL
from agentbox.contracts.orchestrator import DEFAULT, AgentSpec
from agentbox.contracts.sandboxes import MAX_NAME, TTL_SECONDS, NewSandbox, SessionSandbox


def of_sandbox(sandbox: NewSandbox, config: HostConfig) -> AgentSpec:
    """Raises ValidationError."""
    _check_name(sandbox.name)
    if sandbox.limits is not None and sandbox.limits.wall_seconds is not None:
        raise invalid("/limits/wall_seconds", "is set by ttl_s")
    return AgentSpec(
        name=sandbox.name,
        profile=sandbox.profile,
        env=sandbox.env,
        labels=sandbox.labels,
        limits=replace(sandbox.limits or DEFAULT, wall_seconds=_ttl(sandbox, config)),
    )


def of_server(sandbox: NewSandbox) -> AgentSpec:
    """That of an MCP server: its row decides everything but name and labels, and it has no end of
    its own beside `limits.agent_wall_seconds`. Raises ValidationError."""
    _check_name(sandbox.name)
    row = sandbox.labels.get(SERVER_LABEL, "")
    return AgentSpec(name=sandbox.name, agent=f"{PREFIX}{row}", labels=sandbox.labels)


def of_session(sandbox: SessionSandbox) -> AgentSpec:
    """Raises ValidationError."""
    _check_name(sandbox.name)
    return AgentSpec(name=sandbox.name, agent=sandbox.agent, env=sandbox.env, labels=sandbox.labels)


def _check_name(name: str) -> None:
    if not 0 < len(name) <= MAX_NAME:
        raise invalid("/name", f"must have 1 to {MAX_NAME} characters")


def _ttl(sandbox: NewSandbox, config: HostConfig) -> float:
    """Seconds: what is asked for, else what the manifest allows."""
    allowed = float(config.sandboxes.ttl_seconds)
    if wall := config.limits.agent_wall_seconds:
        allowed = min(allowed, wall)
    if sandbox.ttl_s is None:
        return allowed
    if not TTL_SECONDS[0] <= sandbox.ttl_s <= allowed:
        raise invalid("/ttl_s", f"must be from {TTL_SECONDS[0]} to {allowed:g}")
    return sandbox.ttl_s

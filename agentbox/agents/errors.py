"""Errors of calls to agent-host."""

from agentbox.contracts.orchestrator import AgentHandle
from agentbox.core.slot_errors import StaleHandle, ValidationError


def invalid(pointer: str, detail: str) -> ValidationError:
    """A ValidationError about one parameter."""
    return ValidationError(
        f"invalid {pointer}: {detail}", errors=[{"pointer": pointer, "detail": detail}]
    )


def stale_handle(handle: AgentHandle, current: int) -> StaleHandle:
    """The error of a handle of another generation than the current one."""
    return StaleHandle(
        f"cannot use generation {handle.generation} of agent {handle.agent_id}: "
        f"the current one is {current}",
        generation=handle.generation,
        current=current,
    )

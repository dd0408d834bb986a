"""The time that one call of a tool may take: `limits.tool_timeout_seconds` of the agent."""

import asyncio
from collections.abc import Awaitable
from typing import Any

from agentbox.gateway.agent_api import errors
from agentbox.gateway.agent_api.errors import AgentApiError
from agentbox.policy.rights.authorization import Authorization


async def with_timeout(caller: Authorization, tool: str, work: Awaitable[Any]) -> Any:
    """Awaits a call within the agent's tool timeout, which excludes approvals. Raises
    AgentApiError."""
    seconds, key = (
        float(caller.limits["tool_timeout_seconds"]),
        "limits.tool_timeout_seconds",
    )
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError as error:
        raise AgentApiError(
            errors.FAILED,
            f"cannot finish {tool}: it took longer than {seconds:g} s ({key})",
            "tool-timeout",
            limit="tool_timeout_seconds",
            cap=seconds,
            config_path=key,
        ) from error

"""Typed client of a box's API, synchronous and asynchronous. Its records are those of
`agentbox.contracts`.

Clients are imported on first use, so that each command imports what it needs.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentbox.client.agent_api import (
        AgentApiClient,
        AgentApiDenied,
        AgentApiUnreachable,
        AsyncAgentApiClient,
    )
    from agentbox.client.async_client.client import AsyncBoxClient
    from agentbox.client.errors import ApiError, BoxUnreachable
    from agentbox.client.paging import every, every_async
    from agentbox.client.sync.client import BoxClient

__all__ = [
    "AgentApiClient",
    "AgentApiDenied",
    "AgentApiUnreachable",
    "ApiError",
    "AsyncAgentApiClient",
    "AsyncBoxClient",
    "BoxClient",
    "BoxUnreachable",
    "every",
    "every_async",
]
_LAZY = {
    "AsyncAgentApiClient": "agent_api",
    "AgentApiClient": "agent_api",
    "AgentApiDenied": "agent_api",
    "AgentApiUnreachable": "agent_api",
    "every_async": "paging",
    "every": "paging",
    "ApiError": "errors",
    "AsyncBoxClient": "async_client.client",
    "BoxClient": "sync.client",
    "BoxUnreachable": "errors",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(name)
    from importlib import import_module

    return getattr(import_module(f"agentbox.client.{_LAZY[name]}"), name)

"""Typed client of a box's API, synchronous and asynchronous, built on the operation registry.

Clients are imported on first use: the API shares the records and must not import an HTTP client at
start.
"""

from typing import TYPE_CHECKING, Any

from agentbox.client.records import LogItem, Readiness, Submitted, Task

if TYPE_CHECKING:
    from agentbox.client.agent_api import (
        AgentApiClient,
        AgentApiDenied,
        AgentApiUnreachable,
        AsyncAgentApiClient,
    )
    from agentbox.client.agent_calls import Agent, AgentExit, RunOutput
    from agentbox.client.async_client.client import AsyncBoxClient
    from agentbox.client.bead_records import Bead, BeadClaim, Event
    from agentbox.client.errors import ApiError, BoxUnreachable
    from agentbox.client.paging import every, every_async
    from agentbox.client.pods import Hit, MemoryEntry, PodMeta, WrittenPod
    from agentbox.client.sync.client import BoxClient
    from agentbox.core.http.sse_parser import SseEvent

__all__ = [
    "Agent",
    "AgentApiClient",
    "AgentApiDenied",
    "AgentApiUnreachable",
    "AgentExit",
    "ApiError",
    "AsyncAgentApiClient",
    "AsyncBoxClient",
    "Bead",
    "BeadClaim",
    "BoxClient",
    "BoxUnreachable",
    "Event",
    "Hit",
    "LogItem",
    "MemoryEntry",
    "PodMeta",
    "Readiness",
    "RunOutput",
    "SseEvent",
    "Submitted",
    "Task",
    "WrittenPod",
    "every",
    "every_async",
]
_LAZY = {
    "AsyncAgentApiClient": "client.agent_api",
    "AgentApiClient": "client.agent_api",
    "AgentApiDenied": "client.agent_api",
    "AgentApiUnreachable": "client.agent_api",
    "every_async": "client.paging",
    "every": "client.paging",
    "Event": "client.bead_records",
    "BeadClaim": "client.bead_records",
    "Bead": "client.bead_records",
    "Agent": "client.agent_calls",
    "AgentExit": "client.agent_calls",
    "ApiError": "client.errors",
    "AsyncBoxClient": "client.async_client.client",
    "BoxClient": "client.sync.client",
    "BoxUnreachable": "client.errors",
    "Hit": "client.pods",
    "MemoryEntry": "client.pods",
    "PodMeta": "client.pods",
    "RunOutput": "client.agent_calls",
    "SseEvent": "core.http.sse_parser",
    "WrittenPod": "client.pods",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(name)
    from importlib import import_module

    return getattr(import_module(f"agentbox.{_LAZY[name]}"), name)

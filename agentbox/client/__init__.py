"""A small typed client of a box's API, synchronous and asynchronous, built on the route table.

The clients are bound at first use: the API shares the records, and must not pay for an HTTP client at its start.
"""

from typing import TYPE_CHECKING, Any

from agentbox.client.records import LogItem, Readiness, Submitted, Task

if TYPE_CHECKING:
    from agentbox.client.agent_calls import Agent, AgentExit, RunOutput
    from agentbox.client.aio import AsyncBoxClient
    from agentbox.client.bead_records import Bead, BeadClaim, Event
    from agentbox.client.box import BoxClient
    from agentbox.client.door import AsyncDoor, Door, DoorRefused, DoorUnreachable
    from agentbox.client.errors import ApiError, BoxUnreachable
    from agentbox.client.paging import every, every_async
    from agentbox.client.slot_calls import Hit, MemoryEntry, PodMeta, WrittenPod
    from agentbox.client.sse import SseEvent

__all__ = [
    "Agent",
    "AgentExit",
    "ApiError",
    "AsyncBoxClient",
    "AsyncDoor",
    "Bead",
    "BeadClaim",
    "BoxClient",
    "BoxUnreachable",
    "Door",
    "DoorRefused",
    "DoorUnreachable",
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
    "AsyncDoor": "door",
    "Door": "door",
    "DoorRefused": "door",
    "DoorUnreachable": "door",
    "every_async": "paging",
    "every": "paging",
    "Event": "bead_records",
    "BeadClaim": "bead_records",
    "Bead": "bead_records",
    "Agent": "agent_calls",
    "AgentExit": "agent_calls",
    "ApiError": "errors",
    "AsyncBoxClient": "aio",
    "BoxClient": "box",
    "BoxUnreachable": "errors",
    "Hit": "slot_calls",
    "MemoryEntry": "slot_calls",
    "PodMeta": "slot_calls",
    "RunOutput": "agent_calls",
    "SseEvent": "sse",
    "WrittenPod": "slot_calls",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(name)
    from importlib import import_module

    return getattr(import_module(f"agentbox.client.{_LAZY[name]}"), name)

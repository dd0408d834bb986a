"""A small typed client of a box's API, synchronous and asynchronous, built on the route table."""

from agentbox.client.aio import AsyncBoxClient
from agentbox.client.box import BoxClient
from agentbox.client.errors import ApiError, BoxUnreachable
from agentbox.client.records import LogItem, Readiness, Submitted, Task
from agentbox.client.sse import SseEvent

__all__ = [
    "ApiError",
    "AsyncBoxClient",
    "BoxClient",
    "BoxUnreachable",
    "LogItem",
    "Readiness",
    "SseEvent",
    "Submitted",
    "Task",
]

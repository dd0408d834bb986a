"""Limits the memory of request bodies, per agent and in total."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from agentbox.gateway.llm.vendor_protocol import ModelGatewayError

MAX_PER_AGENT: Final = 32 << 20  # bytes of concurrent requests of one agent
MAX_TOTAL: Final = 128 << 20  # bytes of all concurrent requests


class BodyMemory:
    """Counts the bytes of requests in progress."""

    def __init__(self) -> None:
        self.reserved: Counter[str] = Counter()

    @contextmanager
    def reserve(self, agent_id: str, size: int) -> Iterator[None]:
        """Reserves the bytes for a request in progress. Raises ModelGatewayError (503)."""
        if (
            self.reserved[agent_id] + size > MAX_PER_AGENT
            or self.reserved.total() + size > MAX_TOTAL
        ):
            raise ModelGatewayError(
                "overloaded",
                "too many large requests are in progress",
                rule="llm:bytes",
                retry_after=1.0,
            )
        self.reserved[agent_id] += size
        try:
            yield
        finally:
            self.reserved[agent_id] -= size
            if not self.reserved[agent_id]:
                del self.reserved[agent_id]

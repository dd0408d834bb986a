"""Room for bodies: an agent that sends many large ones waits for itself, and the box keeps its memory."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from agentbox.gateway.llm.types import ModelGatewayError

MAX_PER_AGENT: Final = 32 << 20  # bytes of requests that one agent may have under way
MAX_TOTAL: Final = 128 << 20  # of all agents together


class BodyMemory:
    """Counts what requests under way hold."""

    def __init__(self) -> None:
        self.reserved: Counter[str] = Counter()

    @contextmanager
    def reserve(self, agent_id: str, size: int) -> Iterator[None]:
        """For as long as a request of that many bytes is under way. Raises Answer (503)."""
        if (
            self.reserved[agent_id] + size > MAX_PER_AGENT
            or self.reserved.total() + size > MAX_TOTAL
        ):
            raise ModelGatewayError(
                "overloaded",
                "too many large requests are under way",
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

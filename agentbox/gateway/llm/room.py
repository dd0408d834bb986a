"""Room for bodies: an agent that sends many large ones waits for itself, and the box keeps its memory."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from agentbox.gateway.llm.types import Answer

OF_ONE: Final = 32 << 20  # bytes of requests that one agent may have under way
OF_ALL: Final = 128 << 20  # of all agents together


class Room:
    """Counts what requests under way hold."""

    def __init__(self) -> None:
        self.held: Counter[str] = Counter()

    @contextmanager
    def holding(self, agent_id: str, size: int) -> Iterator[None]:
        """For as long as a request of that many bytes is under way. Raises Answer (503)."""
        if self.held[agent_id] + size > OF_ONE or self.held.total() + size > OF_ALL:
            raise Answer("overloaded", "too many large requests are under way", rule="llm:bytes", wait=1.0)
        self.held[agent_id] += size
        try:
            yield
        finally:
            self.held[agent_id] -= size
            if not self.held[agent_id]:
                del self.held[agent_id]

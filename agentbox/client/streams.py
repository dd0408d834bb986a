"""When a broken stream is taken up again, and when it is given up."""

import json
import time
from dataclasses import dataclass, field

from agentbox.client.errors import ApiError
from agentbox.core.http.sse_parser import SseEvent

ENDED_EARLY = "the stream ended before its last event"
RETRY_SECONDS = 0.25  # an API that supervisord restarts listens again within a second
IDLE_TIMEOUT = 45.0  # the server sends a comment every 15 s


@dataclass
class StreamResumption:
    """Bookkeeping of one stream: the id to go on from, and how long nothing has come.

    A stream is given up after `patience` seconds without a connection; each event starts the count anew.
    """

    patience: float = 60.0
    last_id: str = ""
    _broken_at: float | None = field(default=None)

    def headers(self) -> dict[str, str]:
        """The header by which the server goes on where the last connection broke."""
        return {"Last-Event-ID": self.last_id} if self.last_id else {}

    def on_event(self, event: SseEvent) -> None:
        """An event arrived whole. Raises ApiError for the one by which the server tells why it ends the stream."""
        if event.event == "error":
            problem = json.loads(event.data)
            raise ApiError(int(problem.get("status", 500)), problem)
        self.last_id = event.id or self.last_id
        self._broken_at = None

    def may_retry(self, error: Exception) -> bool:
        """True when the stream should be opened again after RETRY_SECONDS; starts the count of patience."""
        if isinstance(error, ApiError) and not error.retryable:
            return False
        now = time.monotonic()
        self._broken_at = self._broken_at or now
        return now - self._broken_at < self.patience

"""When a broken stream is resumed and when it is abandoned."""

import json
import time
from dataclasses import dataclass, field

from agentbox.client.errors import ApiError
from agentbox.core.http.sse_parser import SseEvent

ENDED_EARLY = "the stream ended before its last event"
RETRY_SECONDS = 0.25  # an API restarted by supervisord listens again within a second
IDLE_TIMEOUT = 45.0  # the server sends a comment every 15 s


@dataclass
class StreamResumption:
    """State of one stream: the last event id, and since when it is disconnected.

    A stream is abandoned after `reconnect_timeout` seconds without a connection; each event resets
    the time.
    """

    reconnect_timeout: float = 60.0
    last_id: str = ""
    _broken_at: float | None = field(default=None)

    def headers(self) -> dict[str, str]:
        """The header that makes the server resume after the last event."""
        return {"Last-Event-ID": self.last_id} if self.last_id else {}

    def on_event(self, event: SseEvent) -> None:
        """Records a received event. Raises ApiError for the event with which the server ends a
        stream."""
        if event.event == "error":
            problem = json.loads(event.data)
            raise ApiError(int(problem.get("status", 500)), problem)
        self.last_id = event.id or self.last_id
        self._broken_at = None

    def may_retry(self, error: Exception) -> bool:
        """Whether to reopen the stream after RETRY_SECONDS; the first failure starts the
        timeout."""
        if isinstance(error, ApiError) and not error.retryable:
            return False
        now = time.monotonic()
        self._broken_at = self._broken_at or now
        return now - self._broken_at < self.reconnect_timeout

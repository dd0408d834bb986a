"""Journal -> chat: from the place that was kept, in order, each event at least once."""

from pathlib import Path
from typing import Final

from agentbox.box.programs.telegram.chat import Chat
from agentbox.box.programs.telegram.words import messages
from agentbox.client import BoxClient
from agentbox.core.files.atomic import replace

TYPES: Final = "agent.*"
_PAGE: Final = 100
_EXPIRED: Final = 410


class Mirror:
    """`place` is a file that holds the number of the last event that was sent."""

    def __init__(self, client: BoxClient, chat: Chat, place: Path, box: str) -> None:
        self._client, self._chat, self._place, self._box = client, chat, place, box

    def run(self) -> None:
        """For ever. Raises ApiError, BoxUnreachable (supervisord starts the program again), ChatRefused, OSError."""
        position = self.position()
        while True:
            for event in self._client.stream("stream_events", query={"types": TYPES}, since=str(position)):
                if int(event.id) > position:
                    position = self.catch_up(position)

    def catch_up(self, position: int) -> int:
        """Sends everything after `position`; returns the number of the last event sent."""
        while events := self._client.call("read_events", query={"since": position, "limit": _PAGE, "types": TYPES})[
            "events"
        ]:
            for message in messages(self._box, events):
                self._chat.send(message)
            position = int(events[-1]["seq"])
            self._keep(position)
        return position

    def position(self) -> int:
        """Where the last run ended; on a first run, and where the journal no longer goes back so far, now."""
        try:
            kept = int(self._place.read_text(encoding="ascii"))
        except (FileNotFoundError, ValueError):
            return self._now()
        answer = self._client.call("read_events", query={"since": kept, "limit": 1}, accepted=(_EXPIRED,))
        return kept if "events" in answer else self._now()

    def _now(self) -> int:
        position = int(self._client.call("head_event")["seq"])
        self._keep(position)
        return position

    def _keep(self, position: int) -> None:
        replace(self._place, str(position).encode(), mode=0o600)

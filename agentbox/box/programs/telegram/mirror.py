"""Journal -> chat: from the stored position, in order, each event at least once."""

from pathlib import Path
from typing import Final

from agentbox.box.programs.telegram.chat_sender import ChatSender
from agentbox.box.programs.telegram.formatting import group_messages
from agentbox.client import BoxClient
from agentbox.core.files.atomic import replace

TYPES: Final = "agent.*"
_PAGE: Final = 100
_EXPIRED: Final = 410


class Mirror:
    """`position_file` stores the number of the last event that was sent."""

    def __init__(self, client: BoxClient, chat: ChatSender, position_file: Path, box: str) -> None:
        self._client, self._chat, self._position_file, self._box = client, chat, position_file, box

    def run(self) -> None:
        """Runs forever. Raises ApiError, BoxUnreachable (supervisord restarts the program),
        ChatRefused, OSError.
        """
        position = self.load_position()
        while True:
            for event in self._client.stream(
                "stream_events", query={"types": TYPES}, since=str(position)
            ):
                if int(event.id) > position:
                    position = self.catch_up(position)

    def catch_up(self, position: int) -> int:
        """Sends everything after `position`; returns the number of the last event sent."""
        while events := self._client.call(
            "read_events", query={"since": position, "limit": _PAGE, "types": TYPES}
        )["events"]:
            for message in group_messages(self._box, events):
                self._chat.send(message)
            position = int(events[-1]["seq"])
            self._store_position(position)
        return position

    def load_position(self) -> int:
        """The stored position; the end of the journal on a first run, and where the journal was
        trimmed past it.
        """
        try:
            stored = int(self._position_file.read_text(encoding="ascii"))
        except (FileNotFoundError, ValueError):
            return self._latest_position()
        response = self._client.call(
            "read_events", query={"since": stored, "limit": 1}, accepted=(_EXPIRED,)
        )
        return stored if "events" in response else self._latest_position()

    def _latest_position(self) -> int:
        position = int(self._client.call("head_event")["seq"])
        self._store_position(position)
        return position

    def _store_position(self, position: int) -> None:
        replace(self._position_file, str(position).encode(), mode=0o600)

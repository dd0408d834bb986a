"""The watch of one directory that a family of requirements has."""

from agentbox.box.readiness.directory_events import DirectoryEvents


class DirectoryWatch:
    """Mixed into a requirement, whose `attach` sets `_events`."""

    _events: DirectoryEvents | None = None

    def detach(self) -> None:
        if self._events is not None:
            self._events.close()
            self._events = None

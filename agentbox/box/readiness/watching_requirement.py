"""A family of requirements that watches one directory."""

from agentbox.box.readiness.directory_events import DirectoryEvents
from agentbox.box.readiness.requirement import Requirement


class WatchingRequirement(Requirement):
    """`attach` sets `_events`."""

    _events: DirectoryEvents | None = None

    def detach(self) -> None:
        if self._events is not None:
            self._events.close()
            self._events = None

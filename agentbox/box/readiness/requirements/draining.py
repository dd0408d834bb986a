"""`draining`: the box is shutting down, because supervisord is or because the API was asked to."""

from collections.abc import Callable

from agentbox.box.readiness.directory_events import DirectoryEvents
from agentbox.box.readiness.directory_watch import DirectoryWatch
from agentbox.box.readiness.evaluator import DRAINING
from agentbox.box.readiness.requirement import Requirement, Wake
from agentbox.box.supervision.rpc import SupervisorClient, SupervisorUnavailable
from agentbox.core.background.daemon_threads import DaemonThreadRunner
from agentbox.core.linux.inotify import DELETE
from agentbox.core.paths import Paths

_ENDING = ("SHUTDOWN", "RESTARTING")


class DrainingRequirement(DirectoryWatch, Requirement):
    """Asks supervisord every second, and when a program removes its note. Subscribers are called
    once, when a shutdown is first seen: supervisord stops programs from the last to the first, so
    the API knows long before its own SIGTERM.
    """

    family = "draining"
    period = 1.0

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._client = SupervisorClient(paths)
        self._query: DaemonThreadRunner[str] = DaemonThreadRunner("readiness-draining")
        self._subscribers: list[Callable[[], object]] = []
        self._shutdown_seen = False

    def subscribe(self, shut_down: Callable[[], object]) -> None:
        """Calls `shut_down` when a shutdown is first seen."""
        self._subscribers.append(shut_down)

    def attach(self, wake: Wake) -> None:
        self._events = DirectoryEvents(self._paths.ready_dir, DELETE, lambda _names: wake())

    async def check(self) -> tuple[str, ...]:
        """An absent supervisord is reported by the programs, not here."""
        try:
            state = await self._query(self._client.state)
        except SupervisorUnavailable:
            state = ""
        if state in _ENDING and not self._shutdown_seen:
            self._shutdown_seen = True
            for shut_down in self._subscribers:
                shut_down()
        return (DRAINING,) if self._shutdown_seen else ()

    def missing_on_timeout(self) -> tuple[str, ...]:
        return (DRAINING,) if self._shutdown_seen else ()

"""`draining`: the box is shutting down, because supervisord is or because the API was asked to."""

from collections.abc import Callable

from agentbox.box.readiness.evaluator import DRAINING
from agentbox.box.readiness.folder_events import FolderEvents
from agentbox.box.readiness.requirement import Requirement, Wake
from agentbox.box.supervision.rpc import SupervisorClient, SupervisorUnavailable
from agentbox.core.background.daemon_threads import InThread
from agentbox.core.linux.inotify import DELETE
from agentbox.core.paths import Paths

_ENDING = ("SHUTDOWN", "RESTARTING")


class DrainingRequirement(Requirement):
    """Asks supervisord every second, and when a program takes its note back. `on_shutdown` is called once, when its
    shutdown is first seen: supervisord stops programs from the last to the first, so the API learns of it long before
    its own SIGTERM."""

    family = "draining"
    period = 1.0

    def __init__(self, paths: Paths, on_shutdown: Callable[[], None] = lambda: None) -> None:
        self._paths = paths
        self._client = SupervisorClient(paths)
        self._ask: InThread[str] = InThread("readiness-draining")
        self._on_shutdown = on_shutdown
        self._seen = False
        self._notes: FolderEvents | None = None

    def attach(self, wake: Wake) -> None:
        self._notes = FolderEvents(self._paths.ready_dir, DELETE, lambda _names: wake())

    def detach(self) -> None:
        if self._notes is not None:
            self._notes.close()
            self._notes = None

    async def check(self) -> tuple[str, ...]:
        """An absent supervisord is told by the programs, not here."""
        try:
            state = await self._ask(self._client.state)
        except SupervisorUnavailable:
            state = ""
        if state in _ENDING and not self._seen:
            self._seen = True
            self._on_shutdown()
        return (DRAINING,) if self._seen else ()

    def late(self) -> tuple[str, ...]:
        return (DRAINING,) if self._seen else ()

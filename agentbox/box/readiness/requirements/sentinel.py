"""`bootstrap.done sentinel`: the boot was sealed, and the sentinel is unchanged."""

from collections.abc import Callable, Mapping

from agentbox.box.readiness.directory_events import DirectoryEvents
from agentbox.box.readiness.directory_watch import DirectoryWatch
from agentbox.box.readiness.evaluator import NOT_SEALED
from agentbox.box.readiness.requirement import Requirement, Wake
from agentbox.box.supervision.sentinel import read_sentinel, sentinel_fault
from agentbox.core.linux.inotify import ANY_CHANGE
from agentbox.core.paths import Paths


class SentinelRequirement(DirectoryWatch, Requirement):
    """`recorded` returns the hash of this boot's sentinel in the journal, None without one; until
    then the first hash seen is compared with later ones.
    """

    family = "sentinel"
    title = "bootstrap.done"

    def __init__(
        self,
        paths: Paths,
        boot_id: str,
        plan_digest: str,
        recorded: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._paths = paths
        self._boot_id = boot_id
        self._plan_digest = plan_digest
        self._recorded = recorded
        self._first_sha256: str | None = None

    @property
    def sealed(self) -> bool:
        """True once a valid sentinel was read."""
        return self._first_sha256 is not None

    async def check(self) -> tuple[str, ...]:
        """A file of a few KiB in memory: read without a thread. An unreadable file counts as
        missing.
        """
        try:
            sentinel_file = read_sentinel(self._paths.sentinel)
        except OSError:
            sentinel_file = None
        expected = self._recorded() or self._first_sha256
        if sentinel_file is None or sentinel_fault(
            sentinel_file, boot_id=self._boot_id, plan_digest=self._plan_digest, sha256=expected
        ):
            return (NOT_SEALED,)
        self._first_sha256 = sentinel_file.sha256
        return ()

    def missing_on_timeout(self) -> tuple[str, ...]:
        return (NOT_SEALED,)

    def attach(self, wake: Wake) -> None:
        name = self._paths.sentinel.name
        self._events = DirectoryEvents(
            self._paths.run, ANY_CHANGE, lambda names: wake() if name in names else None
        )

    def evidence(self) -> Mapping[str, str]:
        return {"sentinel_sha256": self._first_sha256} if self._first_sha256 else {}

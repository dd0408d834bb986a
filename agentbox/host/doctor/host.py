"""What the checks are told: the box that is meant, what it would be started from, and the engine that would run it."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from agentbox.core.paths import HostPaths
from agentbox.host.engines.docker import daemon_status
from agentbox.host.engines.docker.docker import DockerEngine
from agentbox.host.engines.engine_choice import Engine
from agentbox.host.engines.state import BoxRecord, BoxState
from agentbox.plan.model import Plan


@dataclass(frozen=True, kw_only=True)
class Host:
    """`record` is that of the box that runs, or was started last; None before the first start."""

    plan: Plan
    state: BoxState
    engine: Engine
    record: BoxRecord | None = None

    @property
    def is_container(self) -> bool:
        """True where the box is a container."""
        return isinstance(self.engine, DockerEngine)

    @cached_property
    def paths(self) -> HostPaths:
        """Raises AgentboxError as `HostPaths.of_this_user` does."""
        return HostPaths.for_this_user()

    @cached_property
    def daemon(self) -> daemon_status.DaemonStatus:
        """Whether a docker daemon answers; asked once."""
        return daemon_status.query_status()

    @cached_property
    def running(self) -> bool:
        """Whether this very box runs now. Raises AgentboxError when the engine cannot say."""
        if self.record is None or (self.is_container and self.daemon.state != "answers"):
            return False
        return self.engine.inspect(self.record).state == "running"


def existing_ancestor(path: Path) -> Path:
    """The path, or the nearest folder above it that exists: what `statvfs` and `stat` can be asked about."""
    return next(candidate for candidate in (path, *path.parents) if candidate.exists())

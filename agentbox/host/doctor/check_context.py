"""Context of the checks: the box, its plan and its engine."""

from functools import cached_property
from pathlib import Path

from agentbox.core.frozen import frozen
from agentbox.core.paths import HostPaths
from agentbox.host.engines.docker import daemon_status
from agentbox.host.engines.docker.docker import DockerEngine
from agentbox.host.engines.engine_choice import Engine
from agentbox.host.engines.state import BoxRecord, BoxState
from agentbox.plan.model import Plan


@frozen
class CheckContext:
    """`record` is that of the last start; None before the first one."""

    plan: Plan
    state: BoxState
    engine: Engine
    record: BoxRecord | None = None

    @property
    def is_container(self) -> bool:
        """True if the box is a container."""
        return isinstance(self.engine, DockerEngine)

    @cached_property
    def paths(self) -> HostPaths:
        """Raises AgentboxError as `HostPaths.of_this_user` does."""
        return HostPaths.for_this_user()

    @cached_property
    def daemon(self) -> daemon_status.DaemonStatus:
        """Whether a docker daemon responds; queried once."""
        return daemon_status.query_status()

    @cached_property
    def running(self) -> bool:
        """Whether this box is running. Raises AgentboxError if the engine cannot determine it."""
        if self.record is None or (self.is_container and self.daemon.state != "answers"):
            return False
        return self.engine.inspect(self.record).state == "running"


def existing_ancestor(path: Path) -> Path:
    """The path or its nearest existing parent, for `statvfs` and `stat`."""
    return next(candidate for candidate in (path, *path.parents) if candidate.exists())

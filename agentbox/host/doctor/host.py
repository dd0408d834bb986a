"""What the checks are told: the box that is meant, what it would be started from, and the engine that would run it."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from agentbox.core.paths import HostPaths
from agentbox.host.engines.choose import Engine
from agentbox.host.engines.docker import reach
from agentbox.host.engines.docker.docker import Docker
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
    def contained(self) -> bool:
        """True where the box is a container."""
        return isinstance(self.engine, Docker)

    @cached_property
    def paths(self) -> HostPaths:
        """Raises AgentboxError as `HostPaths.of_this_user` does."""
        return HostPaths.of_this_user()

    @cached_property
    def daemon(self) -> reach.Reach:
        """Whether a docker daemon answers; asked once."""
        return reach.reach()

    @cached_property
    def running(self) -> bool:
        """Whether this very box runs now. Raises AgentboxError when the engine cannot say."""
        if self.record is None or (self.contained and self.daemon.state != "answers"):
            return False
        return self.engine.inspect(self.record).state == "running"


def room_at(path: Path) -> Path:
    """The path, or the nearest folder above it that exists: what `statvfs` and `stat` can be asked about."""
    return next(step for step in (path, *path.parents) if step.exists())

"""[resources]: limits of the box."""

from dataclasses import dataclass
from typing import Annotated

from agentbox.manifest.types import Range, Size, key


@dataclass(frozen=True, kw_only=True)
class ResourcesTable:
    """Limits enforced by the container engine."""

    cpus: Annotated[float, Range(0.5, 256)] = key(2.0, "recreate")
    memory: Size = key(Size("4GiB"), "recreate")
    pids: Annotated[int, Range(64, 65536)] = key(2048, "recreate")
    nofile: Annotated[int, Range(1024, 1048576)] = key(16384, "recreate")
    tmp_size: Size = key(Size("256MiB"), "recreate")
    log_size: Size = key(Size("128MiB"), "recreate")
    stop_seconds: Annotated[int, Range(5, 600)] = key(30, "recreate")

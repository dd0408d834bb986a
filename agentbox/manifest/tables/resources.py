"""[resources]: limits of the box."""

from typing import Annotated

from agentbox.core.frozen import frozen
from agentbox.manifest.declarations.constraints import Range
from agentbox.manifest.declarations.key import key
from agentbox.manifest.types import Size


@frozen
class ResourcesTable:
    """What the box as a whole may use."""

    cpus: Annotated[float, Range(0.5, 256)] = key(
        2.0, "recreate", doc="CPU cores of the box.", unit="cores"
    )
    memory: Size = key(
        Size("4GiB"), "recreate", doc="Memory of the box; pages of its tmpfs mounts count in it."
    )
    pids: Annotated[int, Range(64, 65536)] = key(
        2048, "recreate", doc="Processes and threads of the box.", unit="processes"
    )
    nofile: Annotated[int, Range(1024, 1048576)] = key(
        16384, "recreate", doc="Open files of one process, soft and hard limit.", unit="files"
    )
    tmp_size: Size = key(Size("256MiB"), "recreate", doc="Size of the tmpfs /tmp.")
    log_size: Size = key(
        Size("128MiB"),
        "recreate",
        doc="Size of the tmpfs /var/log; log rotation of every program is sized to fit.",
    )
    stop_seconds: Annotated[int, Range(5, 600)] = key(
        30, "recreate", doc="From TERM to KILL of the container."
    )

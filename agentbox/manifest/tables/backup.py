"""[backup]: contents of `agentbox backup`."""

from dataclasses import dataclass
from typing import Annotated, Literal

from agentbox.manifest.declarations.constraints import Range, Unique
from agentbox.manifest.declarations.key import key

BackupPart = Literal["beads", "pods", "memory", "events", "workspace", "identities", "secrets"]


@dataclass(frozen=True, kw_only=True)
class BackupTable:
    """Contents of `agentbox backup`. Manifest and lock are always in an archive."""

    keep: Annotated[int, Range(1, 365)] = key(
        7,
        "live",
        doc="Number of archives; older ones are deleted after a new one is verified.",
        unit="archives",
    )
    include: Annotated[tuple[BackupPart, ...], Unique()] = key(
        ("beads", "pods", "memory", "events", "identities"),
        "live",
        doc="What goes into an archive.",
    )

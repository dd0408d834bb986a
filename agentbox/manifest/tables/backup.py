"""[backup]: contents of `agentbox backup`."""

from dataclasses import dataclass
from typing import Annotated, Literal

from agentbox.manifest.types import Range, Unique, key

Part = Literal["beads", "pods", "memory", "events", "workspace", "identities", "secrets"]


@dataclass(frozen=True, kw_only=True)
class BackupTable:
    """What an archive contains besides manifest and lock, and how many archives are kept."""

    keep: Annotated[int, Range(1, 365)] = key(7, "live")
    include: Annotated[tuple[Part, ...], Unique()] = key(
        ("beads", "pods", "memory", "events", "identities"), "live"
    )

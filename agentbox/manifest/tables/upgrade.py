"""[upgrade]: how a new generation of the box is tried, and how many are kept."""

from typing import Annotated, Literal

from agentbox.core.frozen import frozen
from agentbox.manifest.declarations.constraints import Range
from agentbox.manifest.declarations.key import key


@frozen
class UpgradeTable:
    """How `agentbox upgrade` tries a new generation, and what it does with one that is not good."""

    trial_seconds: Annotated[int, Range(30, 3600)] = key(
        120, "live", doc="How long a new generation may take until it is ready.", unit="seconds"
    )
    settle_seconds: Annotated[int, Range(0, 600)] = key(
        30, "live", doc="How long it must stay ready before it is released.", unit="seconds"
    )
    keep_generations: Annotated[int, Range(2, 20)] = key(
        5, "live", doc="Generations that are kept for going back.", unit="generations"
    )
    rollback: Literal["auto", "ask", "never"] = key(
        "auto",
        "live",
        doc="After a trial that failed: go back, ask first, or leave the box as it is.",
    )
    backup: bool = key(
        True, "live", doc="Make a backup before an upgrade, where backups are set up."
    )

"""[state]: retention of data left by runs."""

from dataclasses import dataclass
from typing import Annotated

from agentbox.manifest.declarations.constraints import Range
from agentbox.manifest.declarations.key import key


@dataclass(frozen=True, kw_only=True)
class StateTable:
    """How long memory and pods of a run stay that has no name."""

    keep_days: Annotated[int, Range(0, 365)] = key(
        7, "live", doc="Retention of a run's state after its end; 0 = deleted at once.", unit="days"
    )

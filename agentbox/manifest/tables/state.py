"""[state]: retention of data left by runs."""

from typing import Annotated

from agentbox.core.frozen import frozen
from agentbox.manifest.declarations.constraints import Range
from agentbox.manifest.declarations.key import key


@frozen
class StateTable:
    """How long memory and pods of a run stay that has no name."""

    keep_days: Annotated[int, Range(0, 365)] = key(
        7, "live", doc="Retention of a run's state after its end; 0 = deleted at once.", unit="days"
    )

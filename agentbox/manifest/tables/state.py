"""[state]: how long what a run left stays."""

from dataclasses import dataclass
from typing import Annotated

from agentbox.manifest.types import Range, key


@dataclass(frozen=True, kw_only=True)
class StateTable:
    """Memory and pods of a run without a name. 0 = they go as soon as the run has ended."""

    keep_days: Annotated[int, Range(0, 365)] = key(7, "live")

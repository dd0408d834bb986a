"""[state]: retention of data left by runs."""

from dataclasses import dataclass
from typing import Annotated

from agentbox.manifest.types import Range, key


@dataclass(frozen=True, kw_only=True)
class StateTable:
    """Memory and pods of unnamed runs. 0 = deleted when the run ends."""

    keep_days: Annotated[int, Range(0, 365)] = key(7, "live")

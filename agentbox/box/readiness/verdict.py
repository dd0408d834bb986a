"""The verdict of `/ready`: one frozen value, replaced as a whole, so that a request reads it
without a lock.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class ReadinessVerdict:
    """`since` is the time at which it became ready, else None. `missing` is in the order of
    `box_requirements.py`.
    """

    ready: bool
    since: datetime | None
    requirements: tuple[str, ...]
    missing: tuple[str, ...]
    degraded: tuple[str, ...]
    checked_at: datetime
    evidence: Mapping[str, Any] = field(default_factory=dict)

"""A point in monotonic time by which a call must have ended."""

import time
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True, order=True)
class Deadline:
    """`expires_at` is in seconds of `time.monotonic()`, which is also the clock of the event loop
    on Linux.
    """

    expires_at: float

    @classmethod
    def after(cls, seconds: float) -> Self:
        """A deadline so many seconds from now."""
        return cls(time.monotonic() + seconds)

    def remaining(self) -> float:
        """Seconds left, never below 0."""
        return max(0.0, self.expires_at - time.monotonic())

    @property
    def passed(self) -> bool:
        return time.monotonic() >= self.expires_at

"""The timeouts and intervals of the slot state machine in seconds. Tests can scale them."""

import random
from dataclasses import fields
from typing import Self

from agentbox.core.frozen import frozen_slots


@frozen_slots
class LifecycleTiming:
    """`scaled(0.01)` divides all times by 100."""

    open: float = 10.0
    failed_close: float = 2.0
    health_interval: float = 5.0
    health: float = 2.0
    close: float = 5.0
    stop: float = 10.0
    retry_minimum: float = 0.1
    retry_initial: float = 1.0
    retry_maximum: float = 60.0
    retry_reset: float = 60.0  # of being ready

    def scaled(self, factor: float) -> Self:
        """Return a copy with all times multiplied by `factor`."""
        return type(self)(**{f.name: getattr(self, f.name) * factor for f in fields(self)})

    def retry_delay(self, failures: int, minimum: float = 0.0) -> float:
        """Return the delay after this number of consecutive failures (from 0), at least `minimum`,
        which is not scaled."""
        ceiling = min(self.retry_maximum, self.retry_initial * 2.0 ** min(failures, 30))
        return max(minimum, self.retry_minimum + random.uniform(0, ceiling))

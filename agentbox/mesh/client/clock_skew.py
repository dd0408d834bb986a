"""The clock difference to the host: reported only."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Protocol

from agentbox.core import clock
from agentbox.mesh.metrics import ClientMetrics

REPORT_SECONDS = 30.0


class _EmitEvent(Protocol):
    def __call__(self, event_type: str, **data: Any) -> None: ...


class ClockSkew:
    """`seconds`: the host's clock minus the local one at the middle of the last call, None before
    the first response."""

    def __init__(self, metrics: ClientMetrics, emit: _EmitEvent) -> None:
        self._metrics, self._emit = metrics, emit
        self.seconds: float | None = None
        self._is_exceeded = False

    @contextmanager
    def measure(self) -> Iterator[Callable[[datetime], None]]:
        """Measures a call; the yielded function takes the host's time of the response."""
        sent, started = clock.now(), time.monotonic()

        def record(host_time: datetime) -> None:
            middle = sent + timedelta(seconds=(time.monotonic() - started) / 2)
            self._update((host_time - middle).total_seconds())

        yield record

    def _update(self, seconds: float) -> None:
        self.seconds = round(seconds, 3)
        self._metrics.skew.set(self.seconds)
        was_exceeded, self._is_exceeded = self._is_exceeded, abs(seconds) > REPORT_SECONDS
        if self._is_exceeded and not was_exceeded:
            self._emit("mesh.clock_skew", skew_s=self.seconds)

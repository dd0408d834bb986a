"""How far the host's wall clock is from ours: told, never acted upon."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Protocol

from agentbox.core import clock
from agentbox.mesh.metrics import ClientMetrics

TOLD_SECONDS = 30.0


class _Tell(Protocol):
    def __call__(self, kind: str, **data: Any) -> None: ...


class Skew:
    """`seconds` is the host's time minus ours at the middle of the last call, None before the first answer."""

    def __init__(self, metrics: ClientMetrics, tell: _Tell) -> None:
        self._metrics, self._tell = metrics, tell
        self.seconds: float | None = None
        self._far = False

    @contextmanager
    def call(self) -> Iterator[Callable[[datetime], None]]:
        """Around a call; what it gives is called with the time that the host answered."""
        sent, began = clock.now(), time.monotonic()

        def heard(host_time: datetime) -> None:
            middle = sent + timedelta(seconds=(time.monotonic() - began) / 2)
            self._hear((host_time - middle).total_seconds())

        yield heard

    def _hear(self, seconds: float) -> None:
        self.seconds = round(seconds, 3)
        self._metrics.skew.set(self.seconds)
        far, self._far = self._far, abs(seconds) > TOLD_SECONDS
        if self._far and not far:
            self._tell("mesh.clock_skew", skew_s=self.seconds)

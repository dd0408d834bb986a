"""Clocks that a test controls."""

import asyncio
import time
from datetime import UTC, datetime, timedelta


class ManualClock:
    """Moves only when told to. `sleep` moves it too."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = start
        self._elapsed = 0.0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        self.advance(seconds)
        await asyncio.sleep(0)

    def advance(self, seconds: float) -> None:
        """Moves the clock forward."""
        self._now += timedelta(seconds=seconds)
        self._elapsed += seconds

    def set_wall(self, moment: datetime) -> None:
        """Sets the wall clock, also backwards; the monotonic clock is unaffected."""
        self._now = moment


class ScaledClock:
    """The system clock, `scale` times as fast; `shift` moves its wall time."""

    def __init__(self, scale: float, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._scale, self._start, self._started = scale, start, time.monotonic()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return (time.monotonic() - self._started) * self._scale

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / self._scale)

    def shift(self, seconds: float) -> None:
        """Moves the wall clock, also backwards; the monotonic clock is unaffected."""
        self._start += timedelta(seconds=seconds)

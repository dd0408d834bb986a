"""A clock that a test moves."""

import asyncio
from datetime import UTC, datetime, timedelta


class ManualClock:
    """Stands still until told to move. `sleep` moves it."""

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
        """Forward."""
        self._now += timedelta(seconds=seconds)
        self._elapsed += seconds

    def set_wall(self, moment: datetime) -> None:
        """Steps the wall clock anywhere, back too; the monotonic one stays."""
        self._now = moment

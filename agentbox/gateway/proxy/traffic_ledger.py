"""Bytes each agent moved through the proxy in the last 24 hours, persisted across restarts."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import structlog

from agentbox.core.files.atomic import read_json, replace_json

log = structlog.get_logger()
_HOUR: Final = 3600
HOURS: Final = 24
_SAVE_SECONDS: Final = 2.0  # lost at most after a crash


class TrafficLedger:
    """Byte counts by agent and hour. `file` is read once and written after changes."""

    def __init__(self, file: Path, clock: Callable[[], float] = time.time) -> None:
        self._file, self._clock = file, clock
        self._hours: dict[str, dict[int, int]] = {}
        self._dirty = False
        try:
            for agent, hours in (read_json(file) or {}).items():
                self._hours[agent] = {int(hour): int(count) for hour, count in hours.items()}
        except (
            ValueError,
            AttributeError,
        ) as error:  # the machine stopped during a write
            log.error(
                "cannot read the traffic ledger: counting from zero",
                file=str(file),
                reason=str(error),
            )

    def total(self, agent_id: str) -> int:
        """Bytes in both directions."""
        first = self._current_hour() - HOURS
        return sum(count for hour, count in self._hours.get(agent_id, {}).items() if hour > first)

    def add(self, agent_id: str, count: int) -> None:
        """Adds bytes to the current hour."""
        hours, hour = self._hours.setdefault(agent_id, {}), self._current_hour()
        hours[hour] = hours.get(hour, 0) + count
        self._dirty = True

    async def save_periodically(self) -> None:
        """Saves every few seconds until cancelled."""
        while True:
            await asyncio.sleep(_SAVE_SECONDS)
            try:
                self.save()
            except OSError as error:
                log.error("cannot save the traffic ledger", reason=error.strerror)

    def save(self) -> None:
        """Writes changes, without expired hours. Raises OSError."""
        if not self._dirty:
            return
        first = self._current_hour() - HOURS
        recent = {
            agent: {h: n for h, n in hours.items() if h > first}
            for agent, hours in self._hours.items()
        }
        self._hours = {agent: hours for agent, hours in recent.items() if hours}
        replace_json(
            self._file,
            {a: {str(h): n for h, n in hours.items()} for a, hours in self._hours.items()},
            durable=False,
        )
        self._dirty = False

    def _current_hour(self) -> int:
        return int(self._clock() // _HOUR)

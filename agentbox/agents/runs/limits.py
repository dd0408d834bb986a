"""Limits of one agent: peaks, one warning near each limit, and breaches."""

import asyncio
from collections.abc import Callable
from typing import Any

from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.policy.limits.gauge import Breach, Gauge
from agentbox.policy.limits.registry import WARN_AT
from agentbox.sandbox.launcher.client import AgentProcess

WARNING, BREACHED = "limit.warning", "limit.breached"  # event types
ReportLimit = Callable[
    [str, dict[str, Any]], None
]  # (event type, {limit, observed, cap, config_path})


class LimitWatch:
    """For one agent over all generations. `report` is called once for each warning and breach."""

    def __init__(self, entry: AgentRecord, report: ReportLimit) -> None:
        self._entry, self._report = entry, report
        self._wall: asyncio.TimerHandle | None = None

    def begin(self, process: AgentProcess) -> None:
        """Watch a new generation."""
        process.readings.store_peaks_in(self._entry.peaks)
        process.readings.on_warning(lambda warning: self._report(WARNING, warning.to_json()))
        if wall := self._entry.limits.wall_seconds:
            self._wall = asyncio.get_running_loop().call_later(
                wall * WARN_AT, self._on_wall_warning, wall
            )

    def end(self, breach: Breach | None, *, timeout: bool) -> None:
        """Report a breach of the generation that has ended."""
        if self._wall is not None:
            self._wall.cancel()
            self._wall = None
        if timeout and (wall := self._entry.limits.wall_seconds):
            breach = Breach(limit=self._entry.wall_name, observed=wall, cap=wall)
        if breach is not None:
            self._report(BREACHED, breach.to_json())

    def _on_wall_warning(self, wall: float) -> None:
        if warning := Gauge(self._entry.wall_name, wall).observe(wall * WARN_AT):
            self._report(WARNING, warning.to_json())

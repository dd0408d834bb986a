"""What one agent's limits make of its life: peaks, one warning near each, a breach."""

import asyncio
from collections.abc import Callable
from typing import Any

from agentbox.agents.registry.entry import Entry
from agentbox.policy.limits.gauge import Breach, Gauge
from agentbox.policy.limits.registry import WARN_AT
from agentbox.sandbox.launcher.client import Agent

WARNING, BREACHED = "limit.warning", "limit.breached"  # types of events
Tell = Callable[[str, dict[str, Any]], None]  # (event type, {limit, observed, cap, config_path})


class LimitWatch:
    """Of one agent through all its lives. `tell` is called once for each warning and breach."""

    def __init__(self, entry: Entry, tell: Tell) -> None:
        self._entry, self._tell = entry, tell
        self._wall: asyncio.TimerHandle | None = None

    def begin(self, agent: Agent) -> None:
        """A life of it runs."""
        agent.seen.keep_in(self._entry.peaks)
        agent.seen.on_warning(lambda warning: self._tell(WARNING, warning.to_json()))
        if wall := self._entry.limits.wall_seconds:
            self._wall = asyncio.get_running_loop().call_later(wall * WARN_AT, self._near_the_end, wall)

    def end(self, breach: Breach | None, *, timeout: bool) -> None:
        """That life is over."""
        if self._wall is not None:
            self._wall.cancel()
            self._wall = None
        if timeout and (wall := self._entry.limits.wall_seconds):
            breach = Breach(limit=self._entry.wall_name, observed=wall, cap=wall)
        if breach is not None:
            self._tell(BREACHED, breach.to_json())

    def _near_the_end(self, wall: float) -> None:
        if warning := Gauge(self._entry.wall_name, wall).see(wall * WARN_AT):
            self._tell(WARNING, warning.to_json())

"""Refusals on their way to agent-host, which keeps the count: exact, and never lost while this program lives."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from agentbox.core.slot_errors import AdapterError

Key = tuple[str, int, str, str]  # agent, generation, layer, rule
Call = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
LONGEST_DETAIL: Final = 200  # characters
_GATHER_SECONDS: Final = 0.05
_PAUSE_SECONDS: Final = 1.0


class Refusals:
    """`call` is a method of agent-host."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._waiting: dict[Key, tuple[int, str]] = {}
        self._some = asyncio.Event()

    def add(self, key: Key, detail: str) -> None:
        """One more; of the details of equal ones that are sent together the last is kept."""
        count, _ = self._waiting.get(key, (0, ""))
        self._waiting[key] = (count + 1, detail[:LONGEST_DETAIL])
        self._some.set()

    async def send(self) -> None:
        """Until cancelled. What agent-host did not take is sent again."""
        while True:
            await self._some.wait()
            await asyncio.sleep(_GATHER_SECONDS)
            self._some.clear()
            for key in list(self._waiting):
                count, detail = self._waiting.pop(key)
                try:
                    await self._call("agent.denied", _params(key, count, detail))
                except (AdapterError, OSError):
                    self._again(key, count, detail)
                    await asyncio.sleep(_PAUSE_SECONDS)

    def _again(self, key: Key, count: int, detail: str) -> None:
        more, newer = self._waiting.get(key, (0, detail))
        self._waiting[key] = (more + count, newer)
        self._some.set()


def _params(key: Key, count: int, detail: str) -> dict[str, Any]:
    agent_id, generation, layer, rule = key
    return {
        "agent_id": agent_id, "generation": generation, "layer": layer, "rule": rule, "count": count, "detail": detail,
    }  # fmt: skip

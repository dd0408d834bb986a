"""Counters of the model gateway, labelled with names from the manifest only, never with text chosen
by an agent. The API exports them."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import structlog

from agentbox.core.files.atomic import replace_json
from agentbox.gateway.llm.call_record import ModelCall

log = structlog.get_logger()
WRITE_SECONDS: Final = 1.0


@dataclass(slots=True)
class GatewayCounters:
    """Totals since the start."""

    calls: Counter[tuple[str, str, str]] = field(
        default_factory=Counter
    )  # provider, agent's name, outcome
    tokens: Counter[tuple[str, str, str]] = field(
        default_factory=Counter
    )  # provider, agent's name, input or output
    estimated: Counter[str] = field(
        default_factory=Counter
    )  # provider: calls charged by an estimate
    cost: Counter[tuple[str, str, str]] = field(
        default_factory=Counter
    )  # provider, pattern of its price, agent's name: micro-units, of earlier runs too
    masked: Counter[tuple[str, str]] = field(default_factory=Counter)  # provider, finding class
    unsearched: Counter[str] = field(
        default_factory=Counter
    )  # provider: bodies that could not be searched
    echoes: Counter[str] = field(
        default_factory=Counter
    )  # provider: responses that contained the key
    retries: Counter[str] = field(default_factory=Counter)  # provider
    waited_ms: Counter[str] = field(default_factory=Counter)  # provider: total time in the queue

    def add_cost(self, call: ModelCall, cost: int | None) -> None:
        """Counts a settled call, if it has a price."""
        if cost is not None:
            self.cost[call.provider, call.pattern, call.manifest_name] += cost

    def to_json(self) -> dict[str, Any]:
        """Each counter as a list of `[labels…, value]`."""
        return {name: _rows(getattr(self, name)) for name in self.__slots__}


def _rows(counter: Counter[Any]) -> list[list[Any]]:
    return [
        [*(key if isinstance(key, tuple) else (key,)), value]
        for key, value in sorted(counter.items())
    ]


async def write_changes(state: Callable[[], dict[str, Any]], path: Path) -> None:
    """Writes the state when it changed, at most once a second, until cancelled."""
    previous: dict[str, Any] = {}
    while True:
        current = state()
        if current != previous:
            previous = current
            try:
                replace_json(path, current, mode=0o600, durable=False)
            except OSError as error:
                log.warning("cannot write the model call counters", reason=error.strerror)
        await asyncio.sleep(WRITE_SECONDS)

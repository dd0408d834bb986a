"""What the model gateway counts, by names of the manifest only: no text that an agent chose is a label. The API shows it."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import structlog

from agentbox.core.files.atomic import replace_json

log = structlog.get_logger()
WRITE_SECONDS: Final = 1.0


@dataclass(slots=True)
class Gauges:
    """Sums since the start."""

    calls: Counter[tuple[str, str, str]] = field(
        default_factory=Counter
    )  # provider, agent's name, outcome
    tokens: Counter[tuple[str, str, str]] = field(
        default_factory=Counter
    )  # provider, agent's name, input or output
    estimated: Counter[str] = field(
        default_factory=Counter
    )  # provider: calls settled by an estimate
    masked: Counter[tuple[str, str]] = field(default_factory=Counter)  # provider, class of finding
    unsearched: Counter[str] = field(
        default_factory=Counter
    )  # provider: bodies that the filter could not search
    echoes: Counter[str] = field(
        default_factory=Counter
    )  # provider: times that it sent the key back
    retries: Counter[str] = field(default_factory=Counter)  # provider
    waited_ms: Counter[str] = field(
        default_factory=Counter
    )  # provider: in the queue, all calls together

    def to_json(self) -> dict[str, Any]:
        """Plain data: each counter as a list of `[labels…, value]`."""
        return {name: _rows(getattr(self, name)) for name in self.__slots__}


def _rows(counter: Counter[Any]) -> list[list[Any]]:
    return [
        [*(key if isinstance(key, tuple) else (key,)), value]
        for key, value in sorted(counter.items())
    ]


async def write_changes(state: Callable[[], dict[str, Any]], path: Path) -> None:
    """Writes the state wherever it has changed, once a second at most, until cancelled."""
    previous: dict[str, Any] = {}
    while True:
        current = state()
        if current != previous:
            previous = current
            try:
                replace_json(path, current, mode=0o600, durable=False)
            except OSError as error:
                log.warning("the counts of model calls were not written", reason=error.strerror)
        await asyncio.sleep(WRITE_SECONDS)

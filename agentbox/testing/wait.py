"""Waiting for a condition, with a deadline."""

import asyncio
import time
from collections.abc import Callable

_MAX_PAUSE = 0.2


def pause(started: float, minimum: float = 0.005) -> float:
    """Seconds until the next poll, after one that began then: as long as it took, so that polling leaves half of a processor
    to what is waited for."""
    return max(minimum, min(time.monotonic() - started, _MAX_PAUSE))


async def wait_until(
    condition: Callable[[], bool], description: str | Callable[[], str], *, seconds: float = 30.0
) -> None:
    """Returns once the condition holds. Raises AssertionError with `what`, or what it returns then, at the deadline."""
    deadline = time.monotonic() + seconds
    started = time.monotonic()
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(
                f"not within {seconds:g} s: {description if isinstance(description, str) else description()}"
            )
        await asyncio.sleep(pause(started))
        started = time.monotonic()

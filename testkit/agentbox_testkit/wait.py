"""Waiting for a condition, with a deadline."""

import asyncio
import time
from collections.abc import Callable

_MAX_PAUSE = 0.2


def pause(started: float, minimum: float = 0.005) -> float:
    """Return the seconds until the next poll, as long as the last one took (since `started`), so
    that polling uses at most half of a processor.
    """
    return max(minimum, min(time.monotonic() - started, _MAX_PAUSE))


async def wait_until(
    condition: Callable[[], bool], description: str | Callable[[], str], *, seconds: float = 30.0
) -> None:
    """Wait until the condition is true. Raises AssertionError with `description`, or its result,
    after the deadline.
    """
    deadline = time.monotonic() + seconds
    started = time.monotonic()
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(
                f"not within {seconds:g} s: "
                f"{description if isinstance(description, str) else description()}"
            )
        await asyncio.sleep(pause(started))
        started = time.monotonic()

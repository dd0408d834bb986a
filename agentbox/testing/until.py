"""Waiting for a condition, with a deadline."""

import asyncio
import time
from collections.abc import Callable

_MOST = 0.2


def pause(began: float, least: float = 0.005) -> float:
    """Seconds until the next poll, after one that began then: as long as it took, so that polling leaves half of a processor
    to what is waited for."""
    return max(least, min(time.monotonic() - began, _MOST))


async def until(condition: Callable[[], bool], what: str | Callable[[], str], *, seconds: float = 30.0) -> None:
    """Returns once the condition holds. Raises AssertionError with `what`, or what it returns then, at the deadline."""
    deadline = time.monotonic() + seconds
    began = time.monotonic()
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what if isinstance(what, str) else what()}")
        await asyncio.sleep(pause(began))
        began = time.monotonic()

"""Waiting for a condition, with a deadline."""

import asyncio
import time
from collections.abc import Callable


async def until(condition: Callable[[], bool], what: str, *, seconds: float = 30.0) -> None:
    """Returns once the condition holds. Raises AssertionError naming `what` when the time is over."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        await asyncio.sleep(0.005)

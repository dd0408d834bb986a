"""Waiting on a condition with a deadline; never a fixed sleep."""

import time
from collections.abc import Callable
from typing import TypeVar

from agentbox_testkit.wait import pause

T = TypeVar("T")
_POLL_SECONDS = 0.02


def wait_for(condition: Callable[[], T | None], seconds: float, what: str | Callable[[], str]) -> T:
    """The first true value of `condition`. Fails with `what` and the last value when the deadline passes."""
    deadline = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        last = condition()
        if last:
            return last
        if time.monotonic() > deadline:
            told = what if isinstance(what, str) else what()
            raise AssertionError(f"not within {seconds} s: {told} (last: {last!r})")
        time.sleep(pause(began, _POLL_SECONDS))

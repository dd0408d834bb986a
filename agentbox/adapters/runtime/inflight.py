"""Calls in progress per instance, so that an instance is not closed during a call."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from agentbox.adapters.runtime.adapter import Adapter


class InFlight:
    """Counts the calls of each instance."""

    def __init__(self) -> None:
        self._count: dict[Adapter, int] = {}
        self._waiters: dict[Adapter, asyncio.Event] = {}

    @contextmanager
    def acquire(self, instance: Adapter) -> Iterator[Adapter]:
        """Mark the instance as in use for the duration of the block."""
        self._count[instance] = self._count.get(instance, 0) + 1
        try:
            yield instance
        finally:
            self._count[instance] -= 1
            if not self._count[instance]:
                del self._count[instance]
                if (waiter := self._waiters.pop(instance, None)) is not None:
                    waiter.set()

    async def wait_idle(self, instance: Adapter, seconds: float) -> bool:
        """Wait until no call uses the instance. Return False on timeout."""
        if instance not in self._count:
            return True
        waiter = self._waiters.setdefault(instance, asyncio.Event())
        try:
            async with asyncio.timeout(seconds):
                await waiter.wait()
        except TimeoutError:
            return False
        return True

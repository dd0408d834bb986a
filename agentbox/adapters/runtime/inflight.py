"""Which calls run on which instance, so that an instance is not closed under them."""

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
        """The instance is in use while the body runs."""
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
        """Waits until no call uses the instance; False when the time was over first."""
        if instance not in self._count:
            return True
        waiter = self._waiters.setdefault(instance, asyncio.Event())
        try:
            async with asyncio.timeout(seconds):
                await waiter.wait()
        except TimeoutError:
            return False
        return True

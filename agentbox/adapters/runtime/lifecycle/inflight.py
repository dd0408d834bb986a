"""Calls in progress per instance, and closing an instance after its calls."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from agentbox.adapters.runtime.adapter import Adapter

log = structlog.get_logger()


class InFlight:
    """Counts the calls of each instance and closes it after them."""

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

    async def close(self, instance: Adapter, seconds: float) -> None:
        """Wait for the calls of the instance for half of the time, then close it."""
        await self.wait_idle(instance, seconds / 2)
        try:
            async with asyncio.timeout(seconds / 2):
                await instance.close()
        except TimeoutError:
            log.error(
                "slot.close.late", slot=instance.cfg.slot, impl=instance.impl, seconds=seconds
            )

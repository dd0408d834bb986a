"""A pause that can be interrupted."""

import asyncio

from agentbox.adapters.runtime.adapter import Clock


class InterruptiblePause:
    """For one waiting task at a time, on the clock of the slot."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._interrupted = asyncio.Event()

    def interrupt(self) -> None:
        """End the current pause, if any."""
        self._interrupted.set()

    async def sleep(self, seconds: float) -> None:
        """Wait until the time has passed or `interrupt` is called."""
        self._interrupted.clear()
        tasks = {
            asyncio.ensure_future(self._clock.sleep(seconds)),
            asyncio.ensure_future(self._interrupted.wait()),
        }
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

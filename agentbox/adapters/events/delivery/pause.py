"""A pause that can be cut short."""

import asyncio

from agentbox.adapters.runtime.adapter import Clock


class InterruptiblePause:
    """One sleeper at a time, on the clock of the slot."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._interrupted = asyncio.Event()

    def interrupt(self) -> None:
        """The pause is over, if there is one; the next one is not."""
        self._interrupted.set()

    async def sleep(self, seconds: float) -> None:
        """Until the time is over, or `end` is called."""
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

"""A pause that can be cut short."""

import asyncio

from agentbox.adapters.runtime.adapter import Clock


class Waiting:
    """One sleeper at a time, on the clock of the slot."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ended = asyncio.Event()

    def end(self) -> None:
        """The pause is over, if there is one; the next one is not."""
        self._ended.set()

    async def sleep(self, seconds: float) -> None:
        """Until the time is over, or `end` is called."""
        self._ended.clear()
        both = {asyncio.ensure_future(self._clock.sleep(seconds)), asyncio.ensure_future(self._ended.wait())}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in both:
                one.cancel()
            await asyncio.gather(*both, return_exceptions=True)

"""Blocking checks in daemon threads: a file system that hangs must neither stop the loop nor the end of the process."""

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

T = TypeVar("T")


class DaemonThreadRunner(Generic[T]):
    """One blocking call at a time. While an earlier one still hangs no second is begun: that is a TimeoutError."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._busy = threading.Lock()

    async def __call__(self, call: Callable[[], T]) -> T:
        """The result, or the exception, of `call`. Cancelling leaves the thread to end by itself."""
        if not self._busy.acquire(blocking=False):
            raise TimeoutError(f"{self._name} has not come back yet")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        threading.Thread(
            target=self._work, args=(call, loop, future), name=self._name, daemon=True
        ).start()
        return await future

    def _work(
        self, call: Callable[[], T], loop: asyncio.AbstractEventLoop, future: "asyncio.Future[T]"
    ) -> None:
        try:
            result = call()
        except Exception as error:  # noqa: BLE001  (handed over to whoever awaits)
            self._deliver(loop, future, partial(future.set_exception, error))
        else:
            self._deliver(loop, future, partial(future.set_result, result))

    def _deliver(
        self,
        loop: asyncio.AbstractEventLoop,
        future: "asyncio.Future[T]",
        set_outcome: Callable[[], None],
    ) -> None:
        self._busy.release()
        if not loop.is_closed():
            loop.call_soon_threadsafe(lambda: None if future.done() else set_outcome())

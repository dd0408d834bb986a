"""Blocking checks in daemon threads, so that a hanging file system blocks neither the event loop
nor process exit.
"""

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

T = TypeVar("T")


class DaemonThreadRunner(Generic[T]):
    """Runs one blocking call at a time. Raises TimeoutError while an earlier call still hangs."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._busy = threading.Lock()

    async def __call__(self, call: Callable[[], T]) -> T:
        """Returns the result, or raises the exception, of `call`. Cancelling leaves the thread
        running.
        """
        if not self._busy.acquire(blocking=False):
            raise TimeoutError(f"{self._name} is still running")
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

"""Runs blocking work in a thread of its own. The event loop's executor keeps its threads, which
`close` must not.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


async def run_in_thread(work: Callable[[], T]) -> T:
    """Returns the result of `work`. Cancelling stops the wait, not the thread."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - the future carries it to the caller
            future.set_exception(error)

    future.set_running_or_notify_cancel()
    threading.Thread(target=run, name="agentbox-once", daemon=True).start()
    return await asyncio.wrap_future(future)

"""Work that blocks, in a thread that ends with it. The event loop's own pool keeps its threads, which `close` may not."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


async def run_in_thread(work: Callable[[], T]) -> T:
    """The result of `work`. Cancelling does not stop the thread, only the waiting."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - the future carries it to the caller
            future.set_exception(error)

    future.set_running_or_notify_cancel()
    threading.Thread(target=run, name="agentbox-once", daemon=True).start()
    return await asyncio.wrap_future(future)

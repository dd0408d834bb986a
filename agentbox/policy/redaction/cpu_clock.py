"""The CPU time of a thread without garbage collections, which belong to no search."""

import gc
import threading
import time


class _Collections(threading.local):
    """CPU seconds that collections took in this thread."""

    started = 0.0
    seconds = 0.0


_collections = _Collections()


def _observe(phase: str, _info: dict[str, int]) -> None:
    if phase == "start":
        _collections.started = time.thread_time()
    else:
        _collections.seconds += time.thread_time() - _collections.started


gc.callbacks.append(_observe)  # it runs in the thread that collects


def thread_seconds() -> float:
    """CPU seconds of this thread. A busy machine, or a large heap, is not a slow search."""
    return time.thread_time() - _collections.seconds

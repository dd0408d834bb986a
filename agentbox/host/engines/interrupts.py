"""Ctrl-C during a critical section: a short step is finished before the interrupt takes effect."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def interrupt(_number: int, _frame: FrameType | None) -> None:
    """Ends the command as Ctrl-C does."""
    raise KeyboardInterrupt


def unify_signals() -> None:
    """Makes TERM and HUP (a closed terminal) end the command as Ctrl-C does, so that children are
    stopped and steps finished.
    """
    for number in _SIGNALS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, interrupt)


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Defers the first interrupt until the block ends; a second one takes effect at once.

    A program started in the block should have its own session, or the terminal interrupts it
    anyway.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals arrive in the main thread only
        return
    received = 0

    def count_signal(number: int, frame: FrameType | None) -> None:
        nonlocal received
        received += 1
        if received > 1:
            interrupt(number, frame)

    previous = {number: signal.signal(number, count_signal) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    if received:
        raise KeyboardInterrupt

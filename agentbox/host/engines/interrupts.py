"""Ctrl-C at a bad moment: a short step that must not be cut in two is finished first, then the interrupt counts."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def interrupt(_number: int, _frame: FrameType | None) -> None:
    """A handler that ends the command as Ctrl-C does."""
    raise KeyboardInterrupt


def unify_signals() -> None:
    """Makes TERM and HUP (a closed terminal) end the command as Ctrl-C does: children are told, nothing is half-done."""
    for number in _SIGNALS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, interrupt)


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """The first interrupt waits until the block has ended, a second one is obeyed at once.

    A program started in the block should be in a session of its own, or the terminal interrupts it all the same.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread is ever interrupted
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

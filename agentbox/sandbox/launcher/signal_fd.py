"""Signals as a readable descriptor, for the poll loops of launcher and reaper (signalfd needs
Python 3.14).
"""

import signal
import socket


def open_signal_fd() -> socket.socket:
    """A socket that becomes readable on every signal that has a Python handler; SIGCHLD
    gets one.
    """
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    reader.setblocking(False)
    signal.signal(signal.SIGCHLD, _ignore)
    signal.set_wakeup_fd(writer.detach(), warn_on_full_buffer=False)
    return reader


def _ignore(*_: object) -> None:
    """A handler, so that the signal wakes the poll."""

"""A signal wakes supervisord.

Its own loop sleeps for a whole second despite signals (Python repeats poll(2) after one), so it
would notice an exit, a stop and the first spawn up to a second late. Seen in supervisor 4.3,
`Supervisor.runforever`.
"""

import os
import signal
from typing import Any

from supervisor.options import ServerOptions

_BYTES = 4096


class WakeupPoller:
    """Wraps a poller so that it also returns on a signal. The round after a signal does not sleep
    either, so a program that died is restarted immediately. The first round spawns.
    """

    def __init__(self, poller: Any) -> None:
        self._poller = poller
        self._signals = -1
        self._awake = True

    def poll(self, timeout: float) -> tuple[list[int], list[int]]:
        """The interface of the wrapped poller."""
        if self._signals < 0:  # not earlier: supervisord closes inherited descriptors
            self._signals, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
            signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        self._poller.register_readable(self._signals)
        readable, writable = self._poller.poll(0 if self._awake else timeout)
        self._awake = self._signals in readable
        if self._awake:
            os.read(self._signals, _BYTES)
        return [fd for fd in readable if fd != self._signals], writable

    def __getattr__(self, name: str) -> Any:
        return getattr(self._poller, name)


def wakeup_options() -> Any:
    """The options of supervisord with a poller that wakes on signals."""
    options = ServerOptions()
    options.poller = WakeupPoller(options.poller)
    return options

"""supervisord, awake: a signal ends its sleep.

Its own loop sleeps a whole second over a signal (Python calls poll(2) again after one), so a death, a stop and the first
spawn would each be seen up to a second late. Seen in supervisor 4.3, `Supervisor.runforever`.
"""

import os
import signal
from typing import Any

from supervisor.options import ServerOptions

_BYTES = 4096


class WakeupPoller:
    """The poller that it is given, which also returns when a signal came; the round after that one does not sleep either, so
    what was found dead is started again at once. The very first round spawns."""

    def __init__(self, poller: Any) -> None:
        self._poller = poller
        self._signals = -1
        self._awake = True

    def poll(self, timeout: float) -> tuple[list[int], list[int]]:
        """As the poller's own."""
        if self._signals < 0:  # not before: supervisord closes what it inherits
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
    """Its options, with a poller that is awake."""
    options = ServerOptions()
    options.poller = WakeupPoller(options.poller)
    return options

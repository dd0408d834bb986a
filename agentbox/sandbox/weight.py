"""The weight of an agent's session against other sessions.

Where the kernel shares the processor among sessions first (man 7 sched, autogroup), a nice value counts inside of a session
only, and an agent has a session of its own: without this it would weigh as much as the API. In a cgroup with a processor
controller, as a container has, there are no such groups and the nice value decides.
"""

import errno
import os
import time
from typing import Final

AGAIN_SECONDS: Final = 0.11  # the kernel takes one such change in 0.1 s from all of an unprivileged host


class Weight:
    """Asks until the kernel has taken the change once. What the agent's own children do with `setsid` is not followed."""

    def __init__(self, pid: int, nice: int) -> None:
        self._path, self._nice = f"/proc/{pid}/autogroup", nice
        self._due: float | None = 0.0

    def patience(self) -> float | None:
        """Seconds until `ask` is to be called; None when there is nothing more to do."""
        return None if self._due is None else max(0.0, self._due - time.monotonic())

    def ask(self) -> None:
        """Nothing happens before its time."""
        if self._due is None or time.monotonic() < self._due:
            return
        self._due = None
        try:
            file = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(file, b"%d" % self._nice)
            finally:
                os.close(file)
        except OSError as error:  # no such groups here, or the agent is gone
            if error.errno == errno.EAGAIN:
                self._due = time.monotonic() + AGAIN_SECONDS

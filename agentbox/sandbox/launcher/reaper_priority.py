"""The CPU share of the reaper.

The reaper has a higher priority than its agent: a signal that arrives while a call waits to be read
by the reaper ends that call with EINTR, and a shell whose fork ends so gives up (glibc before 2.41
does not block signals there). An agent that floods its reaper with calls must not get more than its
own share, so a busy reaper permanently gets the agent's priority.
"""

import os
import time
from typing import Final

from agentbox.sandbox.launcher import agent_process
from agentbox.sandbox.spec import Launch

_WINDOW_SECONDS: Final = 0.25  # seconds between two checks
_MAX_CPU: Final = 0.3  # of one CPU, in a window


class ReaperPriority:
    """`poll` is cheap and called after each round of replies."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._has_priority = True
        self._window_start, self._cpu_time = time.monotonic(), time.process_time()

    def poll(self) -> None:
        """Applies the agent's CPUs and nice value after a window in which the reaper was busy."""
        if (
            not self._has_priority
            or (now := time.monotonic()) - self._window_start < _WINDOW_SECONDS
        ):
            return
        cpu_time = time.process_time()
        if cpu_time - self._cpu_time > _MAX_CPU * (now - self._window_start):
            self._has_priority = False
            agent_process.set_cpu_share(self._launch, os.getpid())
        self._window_start, self._cpu_time = now, cpu_time

"""The keeper's own share of the processor.

It is ahead of its agent: a signal that comes while a call waits to be read by the keeper ends that call with EINTR, and a
shell whose fork ends so gives up (glibc before 2.41 does not block signals there). An agent that floods its keeper with
calls must not take more than its own share by that, so a busy keeper becomes as its agent is, for good.
"""

import os
import time
from typing import Final

from agentbox.sandbox.launcher import agent_process
from agentbox.sandbox.spec import Launch

_WINDOW_SECONDS: Final = 0.25  # seconds between two looks
_MAX_CPU: Final = 0.3  # of one CPU, in a window


class ReaperPriority:
    """`look` is cheap, and called after each round of answers."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._has_priority = True
        self._window_start, self._cpu_time = time.monotonic(), time.process_time()

    def poll(self) -> None:
        """Takes the agent's CPUs and nice value after a window in which the keeper was busy."""
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

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

_WINDOW: Final = 0.25  # seconds between two looks
_MOST: Final = 0.3  # of one CPU, in a window


class Eager:
    """`look` is cheap, and called after each round of answers."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._ahead = True
        self._at, self._used = time.monotonic(), time.process_time()

    def look(self) -> None:
        """Takes the agent's CPUs and nice value after a window in which the keeper was busy."""
        if not self._ahead or (now := time.monotonic()) - self._at < _WINDOW:
            return
        used = time.process_time()
        if used - self._used > _MOST * (now - self._at):
            self._ahead = False
            agent_process.share_of_processor(self._launch, os.getpid())
        self._at, self._used = now, used

"""sched_setscheduler(2) and sched_setparam(2) of a thread by its number: granted where nothing changes, and never done.

A library sets what a thread of its own already has, and some end the process when that fails (libzmq does, and with it
every notebook kernel). A change, and any other process, is refused.
"""

import os
import struct
from typing import Final

from agentbox.sandbox.launcher import tree
from agentbox.sandbox.syscalls.denials import Denied
from agentbox.sandbox.syscalls.listener import Listener, Notice

_PRIORITY: Final = struct.Struct("=i")  # struct sched_param, linux/sched/types.h
_RESET_ON_FORK: Final = 0x40000000  # SCHED_RESET_ON_FORK, linux/sched.h
_REFUSED: Final = 1  # EPERM


class Scheduling:
    """Both calls return 0 or raise Denied."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def policy(self, notice: Notice) -> int:
        """The policy is the second argument, a pointer to the priority the third."""
        return self._same(notice, notice.low(1), 2)

    def priority(self, notice: Notice) -> int:
        """A pointer to the priority is the second argument."""
        return self._same(notice, None, 1)

    def _same(self, notice: Notice, policy: int | None, at: int) -> int:
        thread = notice.low(0)
        wanted = _PRIORITY.unpack(self._listener.read_whole(notice, notice.arguments[at], _PRIORITY.size))[0]
        try:
            now = os.sched_getscheduler(thread) & ~_RESET_ON_FORK, os.sched_getparam(thread).sched_priority
            own = tree.process_of(thread) == tree.process_of(notice.pid)
        except OSError as error:
            raise Denied(_REFUSED, notice.call) from error
        if not own or now != (now[0] if policy is None else policy, wanted):
            raise Denied(_REFUSED, notice.call)
        return 0

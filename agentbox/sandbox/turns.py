"""Whose turn it is on a CPU, where no cgroup says so: an agent after the control plane, and a crowd after everybody.

The kernel shares a CPU by process, so that sixty of one agent would get sixty shares; and on a host with autogroups
(sched(7)) by session, whatever the nice values within: then the control plane is one session of many. Both are set from
outside the agent, which can lower itself further and raise nothing.
"""

import contextlib
import errno
import math
import os
import time

from agentbox.sandbox import tree
from agentbox.sandbox.leader import NICE

BEHIND = NICE  # of a session of an agent: a tenth of the share of any other session of the host, as its processes have within one
LAST = 19  # of a crowd: whatever else wants the CPU goes first, and what nobody wants is still its
CROWD_SECONDS = 1.0  # with more running processes than cores
_SWITCH = "/proc/sys/kernel/sched_autogroup_enabled"


class Turns:
    """Of one tree."""

    def __init__(self) -> None:
        self._crowded_since = 0.0  # 0 while no more of its processes run than it has cores
        self._nice: dict[int, int] = {}  # of a process, and
        self._sessions: dict[int, int] = {}  # of a session, what it was told

    def keep(self, rows: list[tree.Process], cores: float) -> None:
        """Called at each look with the living processes of the tree."""
        wanted = LAST if self._crowded(rows, cores) else BEHIND
        for row in rows if wanted == LAST else ():
            if self._nice.get(row.pid) != wanted:
                _step_back(row.pid, wanted)
                self._nice[row.pid] = wanted
        for row in rows if AUTOGROUPS else ():
            if self._sessions.get(row.session, 0) < wanted:
                if not _told(row.pid, wanted):
                    return  # the kernel takes ten a second from those who are no administrator; the next look goes on
                self._sessions[row.session] = wanted

    def _crowded(self, rows: list[tree.Process], cores: float) -> bool:
        if not cores or sum(row.state == "R" for row in rows) <= math.ceil(cores):
            self._crowded_since = 0.0
            return False
        now = time.monotonic()
        self._crowded_since = self._crowded_since or now
        return now >= self._crowded_since + CROWD_SECONDS


def _autogroups() -> bool:
    """Whether this kernel shares by session. In a container with a CPU cgroup it then does not, and nothing is lost."""
    try:
        with open(_SWITCH, "rb") as stream:  # noqa: PTH123 - the launcher keeps its imports few
            return stream.read(1) == b"1"
    except OSError:
        return False


AUTOGROUPS = _autogroups()


def _step_back(pid: int, nice: int) -> None:
    """Gives every thread of a process that nice value; what they start has it too."""
    with contextlib.suppress(OSError):  # gone meanwhile
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - a Path for each costs more than the call
            os.setpriority(os.PRIO_PROCESS, int(thread), nice)


def _told(pid: int, nice: int) -> bool:
    """Sets the nice value of the process's session. False when it must be said again later."""
    try:
        with open(f"/proc/{pid}/autogroup", "wb", buffering=0) as stream:  # noqa: PTH123
            stream.write(b"%d" % nice)
    except OSError as error:
        return error.errno != errno.EAGAIN
    return True

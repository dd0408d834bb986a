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

from agentbox.sandbox.launcher import tree
from agentbox.sandbox.launcher.agent_process import NICE

BEHIND = NICE  # of a session of an agent: a tenth of the share of any other session of the host, as its processes have within one
LAST = 19  # of a crowd: whatever else wants the CPU goes first, and what nobody wants is still its
CROWD_SECONDS = 1.0  # with more running threads than cores
_REST = 20  # times what a count of threads took is at least between two, so that they cost a twentieth of a CPU at most
_SWITCH = "/proc/sys/kernel/sched_autogroup_enabled"


class Turns:
    """Of one tree."""

    def __init__(self) -> None:
        self._crowded_since = 0.0  # 0 while no more of its threads run than it has cores
        self._more = False  # whether more did when they were counted last, and
        self._count_at = 0.0  # when they are counted again
        self._again = 0.0  # when a crowd is told again: threads that began meanwhile may have been missed
        self._sessions: dict[int, int] = {}  # of a session, what it was told

    def keep(self, rows: list[tree.Process], cores: float) -> None:
        """Called at each look with the living processes of the tree."""
        wanted = LAST if self._crowded(rows, cores) else BEHIND
        if wanted == LAST and (now := time.monotonic()) >= self._again:
            self._again = now + CROWD_SECONDS
            for row in rows:
                _step_back(row.pid, wanted)
        present = {row.session for row in rows}
        self._sessions = {session: told for session, told in self._sessions.items() if session in present}
        for row in rows if AUTOGROUPS else ():
            if self._sessions.get(row.session, 0) < wanted:
                if not _told(row.pid, wanted):
                    return  # the kernel takes ten a second from those who are no administrator; the next look goes on
                self._sessions[row.session] = wanted

    def _crowded(self, rows: list[tree.Process], cores: float) -> bool:
        now = time.monotonic()
        if cores and now >= self._count_at:
            self._more = _more_run(rows, math.ceil(cores))
            done = time.monotonic()
            self._count_at = done + _REST * (done - now)
        if not cores or not self._more:
            self._crowded_since = 0.0
            return False
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


def _more_run(rows: list[tree.Process], most: int) -> bool:
    """Whether more threads than that run."""
    if sum(row.threads for row in rows) <= most:
        return False
    running = 0
    for row in rows:
        running += sum(one.state == "R" for one in tree.threads(row.pid)) if row.threads > 1 else row.state == "R"
        if running > most:
            return True
    return False


def _step_back(pid: int, nice: int) -> None:
    """Gives every thread of a process that nice value; what they start has it too."""
    for thread in tree.threads_of(pid):
        with contextlib.suppress(OSError):  # gone meanwhile
            os.setpriority(os.PRIO_PROCESS, thread, nice)


def _told(pid: int, nice: int) -> bool:
    """Sets the nice value of the process's session. False when it must be said again later."""
    try:
        with open(f"/proc/{pid}/autogroup", "wb", buffering=0) as stream:  # noqa: PTH123
            stream.write(b"%d" % nice)
    except OSError as error:
        return error.errno != errno.EAGAIN
    return True

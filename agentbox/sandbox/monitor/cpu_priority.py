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

AGENT_SESSION_NICE = NICE  # of a session of an agent: a tenth of the share of any other session of the host, as its processes have within one
OVERLOAD_NICE = (
    19  # of a crowd: whatever else wants the CPU goes first, and what nobody wants is still its
)
OVERLOAD_SECONDS = 1.0  # with more running threads than cores
_REST_FACTOR = 20  # times what a count of threads took is at least between two, so that they cost a twentieth of a CPU at most
_SWITCH = "/proc/sys/kernel/sched_autogroup_enabled"


class CpuPriority:
    """Of one tree."""

    def __init__(self) -> None:
        self._overloaded_since = 0.0  # 0 while no more of its threads run than it has cores
        self._more_running = False  # whether more did when they were counted last, and
        self._next_count = 0.0  # when they are counted again
        self._next_renice = (
            0.0  # when a crowd is told again: threads that began meanwhile may have been missed
        )
        self._sessions: dict[int, int] = {}  # of a session, what it was told

    def update(self, rows: list[tree.Process], cores: float) -> None:
        """Called at each look with the living processes of the tree."""
        target = OVERLOAD_NICE if self._is_overloaded(rows, cores) else AGENT_SESSION_NICE
        if target == OVERLOAD_NICE and (now := time.monotonic()) >= self._next_renice:
            self._next_renice = now + OVERLOAD_SECONDS
            for row in rows:
                _renice_threads(row.pid, target)
        present = {row.session for row in rows}
        self._sessions = {
            session: nice for session, nice in self._sessions.items() if session in present
        }
        for row in rows if AUTOGROUPS else ():
            if self._sessions.get(row.session, 0) < target:
                if not _set_session_nice(row.pid, target):
                    return  # the kernel takes ten a second from those who are no administrator; the next look goes on
                self._sessions[row.session] = target

    def _is_overloaded(self, rows: list[tree.Process], cores: float) -> bool:
        now = time.monotonic()
        if cores and now >= self._next_count:
            self._more_running = _exceeds_running(rows, math.ceil(cores))
            finished = time.monotonic()
            self._next_count = finished + _REST_FACTOR * (finished - now)
        if not cores or not self._more_running:
            self._overloaded_since = 0.0
            return False
        self._overloaded_since = self._overloaded_since or now
        return now >= self._overloaded_since + OVERLOAD_SECONDS


def _autogroups() -> bool:
    """Whether this kernel shares by session. In a container with a CPU cgroup it then does not, and nothing is lost."""
    try:
        with open(_SWITCH, "rb") as stream:  # noqa: PTH123 - the launcher keeps its imports few
            return stream.read(1) == b"1"
    except OSError:
        return False


AUTOGROUPS = _autogroups()


def _exceeds_running(rows: list[tree.Process], maximum: int) -> bool:
    """Whether more threads than that run."""
    if sum(row.threads for row in rows) <= maximum:
        return False
    running = 0
    for row in rows:
        running += (
            sum(thread.state == "R" for thread in tree.read_threads(row.pid))
            if row.threads > 1
            else row.state == "R"
        )
        if running > maximum:
            return True
    return False


def _renice_threads(pid: int, nice: int) -> None:
    """Gives every thread of a process that nice value; what they start has it too."""
    for thread in tree.thread_ids(pid):
        with contextlib.suppress(OSError):  # gone meanwhile
            os.setpriority(os.PRIO_PROCESS, thread, nice)


def _set_session_nice(pid: int, nice: int) -> bool:
    """Sets the nice value of the process's session. False when it must be said again later."""
    try:
        with open(f"/proc/{pid}/autogroup", "wb", buffering=0) as stream:  # noqa: PTH123
            stream.write(b"%d" % nice)
    except OSError as error:
        return error.errno != errno.EAGAIN
    return True

"""CPU priority without cgroups: agents after the control plane, overloading agents after all
others.

The kernel divides a CPU by process, so sixty processes of one agent would get sixty shares; on a
host with autogroups (sched(7)) it divides by session, whatever the nice values within: then the
control plane is one session of many. Both values are set from outside the agent, which can only
lower its own priority.
"""

import contextlib
import errno
import math
import os
import time

from agentbox.sandbox.launcher import tree
from agentbox.sandbox.spec import AGENT_NICE

OVERLOAD_NICE = 19  # of an overload: runs only when nothing else wants the CPU
OVERLOAD_SECONDS = 1.0  # with more running threads than cores
# pause after a count of threads, as a multiple of its duration: a twentieth of a CPU at most
_REST_FACTOR = 20
_SWITCH = "/proc/sys/kernel/sched_autogroup_enabled"


class CpuPriority:
    """The CPU priority of one tree."""

    def __init__(self, nice: int = AGENT_NICE) -> None:
        """`nice` is that of a session, as of its processes, unless it overloads."""
        self._nice = nice
        self._overloaded_since = 0.0  # 0 unless more threads run than it has cores
        self._more_running = False  # result of the last count
        self._next_count = 0.0  # when threads are counted again
        self._next_renice = (
            0.0  # when an overloading tree is reniced again, for threads that were missed
        )
        self._sessions: dict[int, int] = {}  # nice value by session

    def update(self, rows: list[tree.Process], cores: float) -> None:
        """Called at each poll with the live processes of the tree."""
        target = OVERLOAD_NICE if self._is_overloaded(rows, cores) else self._nice
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
                    # the kernel accepts ten per second from unprivileged users; the next poll
                    # continues
                    return
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
    """Whether this kernel divides CPUs by session. In a container with a CPU cgroup it does not,
    and setting the value has no effect.
    """
    try:
        with open(_SWITCH, "rb") as stream:  # noqa: PTH123 - the launcher keeps its imports few
            return stream.read(1) == b"1"
    except OSError:
        return False


AUTOGROUPS = _autogroups()


def _exceeds_running(rows: list[tree.Process], maximum: int) -> bool:
    """Whether more threads than that are running."""
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
    """Sets the nice value of every thread of a process; new threads inherit it."""
    for thread in tree.thread_ids(pid):
        with contextlib.suppress(OSError):  # it has exited
            os.setpriority(os.PRIO_PROCESS, thread, nice)


def _set_session_nice(pid: int, nice: int) -> bool:
    """Sets the nice value of the process's session. False if it must be retried later."""
    try:
        with open(f"/proc/{pid}/autogroup", "wb", buffering=0) as stream:  # noqa: PTH123
            stream.write(b"%d" % nice)
    except OSError as error:
        return error.errno != errno.EAGAIN
    return True

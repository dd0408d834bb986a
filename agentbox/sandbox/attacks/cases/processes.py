"""Other processes: their memory, descriptors, signals, limits and priorities."""

import ctypes
import os
import resource
import signal
import socket
import time
from typing import Final

from agentbox.sandbox.attacks.attempts import run_attempt, syscall, worst
from agentbox.sandbox.attacks.case import AttackGroup, TargetInfo

SUITE = AttackGroup("processes")
_PROCESS_TESTS: Final = ("tests/unit/sandbox/test_confine.py::test_strangers_cannot_be_reached",)
_CALL_TESTS: Final = ("tests/unit/sandbox/test_confine.py::test_calls_are_refused",)
_FILTER: Final = {"EPERM": "seccomp"}
_ATTACH, _SEIZE = 16, 0x4206  # PTRACE_ATTACH, PTRACE_SEIZE of linux/ptrace.h


class _IoVec(ctypes.Structure):
    """`struct iovec`."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


@SUITE.case("ptrace", "attaches to another agent", _FILTER, tests=_CALL_TESTS)
def _ptrace(facts: TargetInfo) -> str:
    pid = facts.victim_pid
    return worst([syscall("ptrace", request, pid, 0, 0) for request in (_ATTACH, _SEIZE)])


@SUITE.case(
    "read-memory",
    "reads the memory of another agent (process_vm_readv)",
    _FILTER,
    tests=_CALL_TESTS,
)
def _read_memory(facts: TargetInfo) -> str:
    return _access_memory("process_vm_readv", facts)


@SUITE.case(
    "write-memory",
    "writes the memory of another agent (process_vm_writev)",
    _FILTER,
    tests=_CALL_TESTS,
)
def _write_memory(facts: TargetInfo) -> str:
    return _access_memory("process_vm_writev", facts)


@SUITE.case(
    "take-descriptor",
    "takes a descriptor of another agent (pidfd_getfd)",
    _FILTER,
    tests=_CALL_TESTS,
)
def _steal_descriptor(facts: TargetInfo) -> str:
    with open(os.pidfd_open(facts.victim_pid), "rb", buffering=0) as handle:
        return syscall("pidfd_getfd", handle.fileno(), 1, 0)


@SUITE.case(
    "compare", "compares kernel objects with another agent's (kcmp)", _FILTER, tests=_CALL_TESTS
)
def _compare(facts: TargetInfo) -> str:
    return syscall("kcmp", os.getpid(), facts.victim_pid, 0, 1, 1)


@SUITE.case(
    "signal",
    "signals another agent, its own reaper and process 1",
    {"EPERM": "landlock"},
    tests=_PROCESS_TESTS,
)
def _signal(facts: TargetInfo) -> str:
    reaper = _parent_of(os.getsid(0))
    return worst(run_attempt(os.kill, pid, 0) for pid in (facts.victim_pid, reaper, 1))


@SUITE.case(
    "signal-by-handle",
    "signals another agent through a handle (pidfd_send_signal)",
    {"EPERM": "landlock"},
    tests=_PROCESS_TESTS,
)
def _signal_by_handle(facts: TargetInfo) -> str:
    with open(os.pidfd_open(facts.victim_pid), "rb", buffering=0) as handle:
        return run_attempt(lambda: signal.pidfd_send_signal(handle.fileno(), 0))


@SUITE.case(
    "limits",
    "reads and lowers the limits of another agent (prlimit)",
    _FILTER,
    tests=_PROCESS_TESTS,
)
def _limits(facts: TargetInfo) -> str:
    return run_attempt(lambda: resource.prlimit(facts.victim_pid, resource.RLIMIT_NOFILE))


@SUITE.case("priority", "renices another agent, and its scheduling", _FILTER, tests=_PROCESS_TESTS)
def _priority(facts: TargetInfo) -> str:
    pid = facts.victim_pid
    return worst(
        [
            run_attempt(lambda: os.setpriority(os.PRIO_PROCESS, pid, 19)),
            run_attempt(lambda: os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0))),
            syscall("ioprio_set", 1, pid, 3 << 13),
        ]
    )


@SUITE.case(
    "all-priorities",
    "renices all processes of the user and of its group, and their I/O priority",
    _FILTER,
    tests=("tests/unit/sandbox/test_confine.py::test_nobody_elses_turn_changes",),
    since=2,
)
def _all_priorities(_facts: TargetInfo) -> str:
    """Sets the caller's own value. User: 2 (PRIO_USER) and 3 (IOPRIO_WHO_USER)."""
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    return worst(
        [
            syscall("setpriority", 2, 0, nice),
            syscall("setpriority", 1, 0, nice),
            syscall("ioprio_set", 3, 0, 2 << 13 | 4),
            syscall("ioprio_set", 2, 0, 2 << 13 | 4),
        ]
    )


@SUITE.case("processors", "sets its CPU affinity to all processors", _FILTER, tests=_PROCESS_TESTS)
def _processors(_facts: TargetInfo) -> str:
    return run_attempt(lambda: os.sched_setaffinity(0, range(os.cpu_count() or 1)))


@SUITE.case(
    "privileges",
    "sets the clock, the host name and its own scheduling, as root may",
    {"EPERM": "kernel"},
    tests=(
        (
            "tests/unit/sandbox/test_privileges.py::"
            "test_no_capability_is_left_but_that_which_opens_files"
        ),
    ),
)
def _privileges(_facts: TargetInfo) -> str:
    """Each writes the existing value."""
    return worst(
        [
            run_attempt(lambda: time.clock_settime(time.CLOCK_REALTIME, time.time())),
            run_attempt(lambda: socket.sethostname(os.uname().nodename)),
            run_attempt(lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))),
            run_attempt(lambda: os.setgroups([os.getgid()])),
        ]
    )


def _access_memory(name: str, facts: TargetInfo) -> str:
    victim = facts.neighbour
    pid = facts.victim_pid
    buffer = ctypes.create_string_buffer(victim.length or 8)
    local = _IoVec(ctypes.addressof(buffer), len(buffer))
    remote = _IoVec(victim.address, len(buffer))
    return syscall(name, pid, ctypes.addressof(local), 1, ctypes.addressof(remote), 1, 0)


def _parent_of(pid: int) -> int:
    with open(f"/proc/{pid}/stat", encoding="ascii") as stream:
        return int(stream.read().rpartition(")")[2].split()[1])

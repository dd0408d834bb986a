"""Other processes: their memory, descriptors, signals, limits and priorities."""

import ctypes
import os
import resource
import signal
import socket
import time
from typing import Final

from agentbox.sandbox.attacks.attempts import call, tried, worst
from agentbox.sandbox.attacks.line import Absent, Facts, Table

TABLE = Table("processes")
_STRANGERS: Final = ("tests/unit/sandbox/test_confine.py::test_strangers_cannot_be_reached",)
_CALLS: Final = ("tests/unit/sandbox/test_confine.py::test_calls_are_refused",)
_FILTER: Final = {"EPERM": "seccomp"}
_ATTACH, _SEIZE = 16, 0x4206  # PTRACE_ATTACH, PTRACE_SEIZE of linux/ptrace.h


class _Piece(ctypes.Structure):
    """`struct iovec`."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


@TABLE.line("ptrace", "attaches to another agent", _FILTER, tests=_CALLS)
def _ptrace(facts: Facts) -> str:
    pid = _sibling(facts)
    return worst([call("ptrace", request, pid, 0, 0) for request in (_ATTACH, _SEIZE)])


@TABLE.line("read-memory", "reads the memory of another agent (process_vm_readv)", _FILTER, tests=_CALLS)
def _read_memory(facts: Facts) -> str:
    return _vm("process_vm_readv", facts)


@TABLE.line("write-memory", "writes the memory of another agent (process_vm_writev)", _FILTER, tests=_CALLS)
def _write_memory(facts: Facts) -> str:
    return _vm("process_vm_writev", facts)


@TABLE.line("take-descriptor", "takes a descriptor of another agent (pidfd_getfd)", _FILTER, tests=_CALLS)
def _take_descriptor(facts: Facts) -> str:
    with open(os.pidfd_open(_sibling(facts)), "rb", buffering=0) as handle:
        return call("pidfd_getfd", handle.fileno(), 1, 0)


@TABLE.line("compare", "compares kernel objects with another agent's (kcmp)", _FILTER, tests=_CALLS)
def _compare(facts: Facts) -> str:
    return call("kcmp", os.getpid(), _sibling(facts), 0, 1, 1)


@TABLE.line("signal", "signals another agent, its own reaper and process 1", {"EPERM": "landlock"}, tests=_STRANGERS)
def _signal(facts: Facts) -> str:
    reaper = _parent_of(os.getsid(0))
    return worst(tried(os.kill, pid, 0) for pid in (_sibling(facts), reaper, 1))


@TABLE.line("signal-by-handle", "signals another agent through a handle (pidfd_send_signal)", {"EPERM": "landlock"},
            tests=_STRANGERS)  # fmt: skip
def _signal_by_handle(facts: Facts) -> str:
    with open(os.pidfd_open(_sibling(facts)), "rb", buffering=0) as handle:
        return tried(lambda: signal.pidfd_send_signal(handle.fileno(), 0))


@TABLE.line("limits", "reads and lowers the limits of another agent (prlimit)", _FILTER, tests=_STRANGERS)
def _limits(facts: Facts) -> str:
    return tried(lambda: resource.prlimit(_sibling(facts), resource.RLIMIT_NOFILE))


@TABLE.line("priority", "renices another agent, and its scheduling", _FILTER, tests=_STRANGERS)
def _priority(facts: Facts) -> str:
    pid = _sibling(facts)
    return worst([
        tried(lambda: os.setpriority(os.PRIO_PROCESS, pid, 19)),
        tried(lambda: os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0))), call("ioprio_set", 1, pid, 3 << 13),
    ])  # fmt: skip


@TABLE.line("all-priorities", "renices all processes of the user and of its group, and their turn at the disk", _FILTER,
            tests=("tests/unit/sandbox/test_confine.py::test_nobody_elses_turn_changes",), since=2)  # fmt: skip
def _all_priorities(_facts: Facts) -> str:
    """To the value that the caller has. Of the user: 2 (PRIO_USER), and 3 (IOPRIO_WHO_USER)."""
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    return worst([call("setpriority", 2, 0, nice), call("setpriority", 1, 0, nice), call("ioprio_set", 3, 0, 2 << 13 | 4),
                  call("ioprio_set", 2, 0, 2 << 13 | 4)])  # fmt: skip


@TABLE.line("processors", "gives itself all processors", _FILTER, tests=_STRANGERS)
def _processors(_facts: Facts) -> str:
    return tried(lambda: os.sched_setaffinity(0, range(os.cpu_count() or 1)))


@TABLE.line("privileges", "sets the clock, the machine's name and its own turn, as root may", {"EPERM": "kernel"},
            tests=("tests/unit/sandbox/test_privileges.py::test_no_capability_is_left_but_that_which_opens_files",))  # fmt: skip
def _privileges(_facts: Facts) -> str:
    """Each writes back what is there."""
    return worst([
        tried(lambda: time.clock_settime(time.CLOCK_REALTIME, time.time())), tried(lambda: socket.sethostname(os.uname().nodename)),
        tried(lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))), tried(lambda: os.setgroups([os.getgid()])),
    ])  # fmt: skip


def _vm(name: str, facts: Facts) -> str:
    neighbour = facts.neighbour
    pid = _sibling(facts)
    held = ctypes.create_string_buffer(neighbour.length or 8)
    here = _Piece(ctypes.addressof(held), len(held))
    there = _Piece(neighbour.address, len(held))
    return call(name, pid, ctypes.addressof(here), 1, ctypes.addressof(there), 1, 0)


def _sibling(facts: Facts) -> int:
    if not facts.neighbour.pid:
        raise Absent("no neighbour")
    return facts.neighbour.pid


def _parent_of(pid: int) -> int:
    with open(f"/proc/{pid}/stat", encoding="ascii") as stream:
        return int(stream.read().rpartition(")")[2].split()[1])

"""System calls that no agent needs: rarely used parts of the kernel, bypasses of the rules on
paths, and effects that outlive the agent.
"""

import ctypes
import os
import socket
import sys
from typing import Final

from agentbox.sandbox.attacks.attempts import (
    run_attempt,
    syscall,
    syscall_by_number,
    syscall_result,
    worst,
)
from agentbox.sandbox.attacks.case import PASSED, AttackGroup, TargetInfo
from agentbox.sandbox.seccomp.syscalls import MACHINES

SUITE = AttackGroup("calls")
_CALLS: Final = (
    "tests/unit/sandbox/test_bpf.py::test_each_call_gets_its_answer",
    "tests/unit/sandbox/test_confine.py::test_calls_are_refused",
)
_FILTER: Final = {"EPERM": "seccomp"}
_UNKNOWN: Final = {"ENOSYS": "seccomp"}
_NAMESPACES: Final = (
    0x10000000,
    0x00020000,
    0x20000000,
    0x40000000,
    0x08000000,
    0x04000000,
    0x02000000,
)  # CLONE_NEW*
_SIGCHLD: Final = 17
_NEW: Final = 0o1600  # IPC_CREAT, for the owner only
_AT_FDCWD: Final = -100  # AT_FDCWD


@SUITE.case("unshare", "creates namespaces (unshare)", _FILTER, tests=_CALLS)
def _unshare(_facts: TargetInfo) -> str:
    return worst([syscall("unshare", flag) for flag in _NAMESPACES])


@SUITE.case("clone", "starts a child in new namespaces (clone)", _FILTER, tests=_CALLS)
def _clone(_facts: TargetInfo) -> str:
    return worst([_child_with(flag) for flag in _NAMESPACES])


def _child_with(flag: int) -> str:
    parent = os.getpid()
    reply = syscall("clone", flag | _SIGCHLD, 0, 0, 0, 0)
    if os.getpid() != parent:
        os._exit(0)
    return reply


@SUITE.case(
    "clone3", "the same by a call whose flags no filter can read (clone3)", _UNKNOWN, tests=_CALLS
)
def _clone3(_facts: TargetInfo) -> str:
    return syscall("clone3", 0, 0)


@SUITE.case("setns", "enters the namespaces of another process", _FILTER, tests=_CALLS)
def _setns(facts: TargetInfo) -> str:
    with open(os.pidfd_open(facts.neighbour.pid or os.getpid()), "rb", buffering=0) as handle:
        return syscall("setns", handle.fileno(), 0x20000000)


@SUITE.case("mounts", "mounts, unmounts, changes the root", _FILTER, tests=_CALLS)
def _mounts(_facts: TargetInfo) -> str:
    names = (
        "mount",
        "umount2",
        "pivot_root",
        "chroot",
        "move_mount",
        "open_tree",
        "fsopen",
        "fsmount",
        "fspick",
        "mount_setattr",
    )
    return worst(
        syscall(name, _c_string("/proc"), _c_string("/tmp"), _c_string("tmpfs"), 0, 0)
        for name in names
    )


@SUITE.case("handles", "opens a file by its handle, without a path", _FILTER, tests=_CALLS)
def _handles(_facts: TargetInfo) -> str:
    return worst(
        [
            syscall("name_to_handle_at", _AT_FDCWD, _c_string("/"), 0, 0, 0),
            syscall("open_by_handle_at", _AT_FDCWD, 0, 0),
        ]
    )


@SUITE.case("bpf", "loads programs into the kernel (bpf, perf)", _FILTER, tests=_CALLS)
def _bpf(_facts: TargetInfo) -> str:
    return worst([syscall("bpf", 0, 0, 0), syscall("perf_event_open", 0, 0, -1, -1, 0)])


@SUITE.case(
    "io-uring",
    "makes calls that bypass the filter (io_uring)",
    _UNKNOWN | {"EPERM": "container"},
    tests=_CALLS,
)
def _io_uring(_facts: TargetInfo) -> str:
    return worst(
        syscall(name, 1, 0) for name in ("io_uring_setup", "io_uring_enter", "io_uring_register")
    )


@SUITE.case(
    "aio",
    "takes asynchronous I/O contexts, which the host limits for all (io_setup)",
    _UNKNOWN | {"EPERM": "container"},
    tests=_CALLS,
    since=2,
)
def _aio(_facts: TargetInfo) -> str:
    context = ctypes.c_ulong(0)
    return syscall("io_setup", 1, ctypes.addressof(context))


@SUITE.case(
    "references",
    "makes pipes and sockets hold whole pages for few bytes (vmsplice, splice, sendfile)",
    {"EINVAL": "seccomp", "EPERM": "container"},
    tests=("tests/unit/sandbox/test_confine.py::test_a_copy_needs_no_reference",),
    since=2,
)
def _references(_facts: TargetInfo) -> str:
    reading, writing = map(os.fdopen, os.pipe(), ("rb", "wb"))
    local, remote = socket.socketpair()
    page = ctypes.create_string_buffer(b"x")
    iovec = (ctypes.c_size_t * 2)(ctypes.addressof(page), 1)
    with local, remote, reading, writing, open(sys.executable, "rb") as file:
        return worst(
            [
                syscall("vmsplice", writing.fileno(), ctypes.addressof(iovec), 1, 0),
                syscall("splice", file.fileno(), 0, writing.fileno(), 0, 1, 0),
                syscall("sendfile", local.fileno(), file.fileno(), 0, 1),
            ]
        )


@SUITE.case("keys", "uses the key rings, one for the whole user", _FILTER, tests=_CALLS)
def _keys(_facts: TargetInfo) -> str:
    return worst(
        [
            syscall("keyctl", 0, -4, 0),
            syscall("add_key", 0, 0, 0, 0, -4),
            syscall("request_key", 0, 0, 0, 0),
        ]
    )


@SUITE.case("userfaultfd", "suspends the kernel during a copy (userfaultfd)", _FILTER, tests=_CALLS)
def _userfaultfd(_facts: TargetInfo) -> str:
    return syscall("userfaultfd", 1)


@SUITE.case("modules", "loads kernel modules or another kernel", _FILTER, tests=_CALLS)
def _modules(_facts: TargetInfo) -> str:
    names = ("init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load")
    return worst(syscall(name, 0, 0, 0, 0, 0) for name in names)


@SUITE.case(
    "machine", "reboots, swaps, sets quotas, watches the whole file system", _FILTER, tests=_CALLS
)
def _machine(_facts: TargetInfo) -> str:
    names = (
        "reboot",
        "swapon",
        "swapoff",
        "quotactl",
        "fanotify_init",
        "acct",
        "syslog",
        "vhangup",
    )
    return worst(syscall(name, 0, 0, 0, 0) for name in names)


@SUITE.case("name-and-clock", "sets the host name or the time", _FILTER, tests=_CALLS)
def _name_and_clock(_facts: TargetInfo) -> str:
    """In the process engine run by root only the filter stops it. Sets the existing name."""
    name = os.uname().nodename
    clocks = [
        syscall("settimeofday", 0, 0),
        syscall("clock_settime", 0, 0),
        syscall("adjtimex", 0),
        syscall("clock_adjtime", 0, 0),
    ]
    return worst([syscall("sethostname", _c_string(name), len(name)), *clocks])


@SUITE.case("terminal", "types into a terminal (TIOCSTI)", _FILTER, tests=_CALLS)
def _terminal(_facts: TargetInfo) -> str:
    byte = ctypes.create_string_buffer(b"x")
    return worst(
        [syscall("ioctl", 0, number, ctypes.addressof(byte)) for number in (0x5412, 0x541C)]
    )


@SUITE.case(
    "foreign",
    "makes a call of the machine's other ABI",
    {"SIGSYS": "seccomp"},
    tests=("tests/unit/sandbox/test_confine.py::test_a_foreign_call_kills",),
)
def _foreign(_facts: TargetInfo) -> str:
    machine = MACHINES.get(os.uname().machine)
    if machine is None or not machine.other_abi:
        return "SIGSYS"  # this machine has only one ABI
    syscall_by_number(machine.other_abi | 39)
    return PASSED


@SUITE.case(
    "shared-memory",
    "leaves System V memory, semaphores and queues behind for all",
    _FILTER,
    tests=_CALLS,
)
def _shared_memory(_facts: TargetInfo) -> str:
    key = 0x0A9E47B0
    replies = [
        syscall("shmget", key, 4096, _NEW),
        syscall("semget", key, 1, _NEW),
        syscall("msgget", key, _NEW),
    ]
    for kind, reply in zip(("shm", "sem", "msg"), replies, strict=True):
        if reply == PASSED:  # removed again: an attempt leaves nothing behind
            number = syscall_result(f"{kind}get", key, *((0, 0) if kind != "msg" else (0,)))
            syscall(f"{kind}ctl", number, 0, 0, 0)
    return worst(replies)


@SUITE.case("posix-queues", "leaves POSIX queues behind for all", _FILTER, tests=_CALLS)
def _posix_queues(_facts: TargetInfo) -> str:
    name = _c_string("agentbox-attack")
    reply = syscall("mq_open", name, os.O_CREAT | os.O_RDWR, 0o600, 0)
    if reply == PASSED:
        syscall("mq_unlink", name)
    return reply


@SUITE.case(
    "unowned-memory",
    "creates memory that belongs to no process (memfd_create)",
    _UNKNOWN,
    tests=("tests/unit/attack/test_battery.py::test_nothing_gets_through",),
)
def _unowned_memory(_facts: TargetInfo) -> str:
    return worst([run_attempt(os.memfd_create, "x"), syscall("memfd_secret", 0)])


@SUITE.case(
    "setuid",
    "runs a copy of a program with a set-user bit",
    {"EPERM": "kernel", "same user": "kernel"},
    tests=(
        "tests/runtime-contract/test_rc_016_hardening_from_inside.py::test_rc_016_no_setuid_file",
    ),
)
def _setuid(_facts: TargetInfo) -> str:
    """no_new_privs disables the bit, so only that flag is checked."""
    with open("/proc/self/status", encoding="ascii") as stream:
        flag = next(line.split()[1] for line in stream if line.startswith("NoNewPrivs:"))
    return "same user" if flag == "1" else PASSED


_retained: list[ctypes.Array[ctypes.c_char]] = []


def _c_string(value: str) -> int:
    """The address of a string that is kept alive."""
    _retained.append(ctypes.create_string_buffer(value.encode()))
    return ctypes.addressof(_retained[-1])

"""System calls that no agent needs: into the kernel's rare corners, around the rules on paths, or beyond its own end."""

import ctypes
import os
import socket
import sys
from typing import Final

from agentbox.sandbox.attacks.attempts import by_number, call, tried, value, worst
from agentbox.sandbox.attacks.line import PASSED, Facts, Table
from agentbox.sandbox.seccomp.syscalls import MACHINES

TABLE = Table("calls")
_CALLS: Final = (
    "tests/unit/sandbox/test_bpf.py::test_each_call_gets_its_answer",
    "tests/unit/sandbox/test_confine.py::test_calls_are_refused",
)
_FILTER: Final = {"EPERM": "seccomp"}
_UNKNOWN: Final = {"ENOSYS": "seccomp"}
_NAMESPACES: Final = (0x10000000, 0x00020000, 0x20000000, 0x40000000, 0x08000000, 0x04000000, 0x02000000)  # CLONE_NEW*
_SIGCHLD: Final = 17
_NEW: Final = 0o1600  # IPC_CREAT, for oneself
_CURRENT: Final = -100  # AT_FDCWD


@TABLE.line("unshare", "makes namespaces of its own (unshare)", _FILTER, tests=_CALLS)
def _unshare(_facts: Facts) -> str:
    return worst([call("unshare", flag) for flag in _NAMESPACES])


@TABLE.line("clone", "starts a child in namespaces of its own (clone)", _FILTER, tests=_CALLS)
def _clone(_facts: Facts) -> str:
    return worst([_child_with(flag) for flag in _NAMESPACES])


def _child_with(flag: int) -> str:
    parent = os.getpid()
    reply = call("clone", flag | _SIGCHLD, 0, 0, 0, 0)
    if os.getpid() != parent:
        os._exit(0)
    return reply


@TABLE.line("clone3", "the same by the call whose flags no filter can read (clone3)", _UNKNOWN, tests=_CALLS)
def _clone3(_facts: Facts) -> str:
    return call("clone3", 0, 0)


@TABLE.line("setns", "enters the namespaces of another process", _FILTER, tests=_CALLS)
def _setns(facts: Facts) -> str:
    with open(os.pidfd_open(facts.neighbour.pid or os.getpid()), "rb", buffering=0) as handle:
        return call("setns", handle.fileno(), 0x20000000)


@TABLE.line("mounts", "mounts, unmounts, changes the root", _FILTER, tests=_CALLS)
def _mounts(_facts: Facts) -> str:
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
    return worst(call(name, _text("/proc"), _text("/tmp"), _text("tmpfs"), 0, 0) for name in names)


@TABLE.line("handles", "opens a file by its handle, past every path", _FILTER, tests=_CALLS)
def _handles(_facts: Facts) -> str:
    return worst([call("name_to_handle_at", _CURRENT, _text("/"), 0, 0, 0), call("open_by_handle_at", _CURRENT, 0, 0)])


@TABLE.line("bpf", "loads programs into the kernel (bpf, perf)", _FILTER, tests=_CALLS)
def _bpf(_facts: Facts) -> str:
    return worst([call("bpf", 0, 0, 0), call("perf_event_open", 0, 0, -1, -1, 0)])


@TABLE.line("io-uring", "makes calls past the filter (io_uring)", _UNKNOWN | {"EPERM": "container"}, tests=_CALLS)
def _io_uring(_facts: Facts) -> str:
    return worst(call(name, 1, 0) for name in ("io_uring_setup", "io_uring_enter", "io_uring_register"))


@TABLE.line("aio", "takes places for reads beside it, of which the host has so many for all (io_setup)",
            _UNKNOWN | {"EPERM": "container"}, tests=_CALLS, since=2)  # fmt: skip
def _aio(_facts: Facts) -> str:
    place = ctypes.c_ulong(0)
    return call("io_setup", 1, ctypes.addressof(place))


@TABLE.line("references", "has pipes and sockets keep whole pages for the bytes that they count (vmsplice, splice, sendfile)",
            {"EINVAL": "seccomp", "EPERM": "container"},
            tests=("tests/unit/sandbox/test_confine.py::test_a_copy_needs_no_reference",), since=2)  # fmt: skip
def _references(_facts: Facts) -> str:
    reading, writing = map(os.fdopen, os.pipe(), ("rb", "wb"))
    near, far = socket.socketpair()
    page = ctypes.create_string_buffer(b"x")
    piece = (ctypes.c_size_t * 2)(ctypes.addressof(page), 1)
    with near, far, reading, writing, open(sys.executable, "rb") as file:
        return worst([
            call("vmsplice", writing.fileno(), ctypes.addressof(piece), 1, 0), call("splice", file.fileno(), 0, writing.fileno(), 0, 1, 0),
            call("sendfile", near.fileno(), file.fileno(), 0, 1),
        ])  # fmt: skip


@TABLE.line("keys", "uses the key rings, one for the whole user", _FILTER, tests=_CALLS)
def _keys(_facts: Facts) -> str:
    return worst([call("keyctl", 0, -4, 0), call("add_key", 0, 0, 0, 0, -4), call("request_key", 0, 0, 0, 0)])


@TABLE.line("userfaultfd", "stops the kernel in the middle of a copy (userfaultfd)", _FILTER, tests=_CALLS)
def _userfaultfd(_facts: Facts) -> str:
    return call("userfaultfd", 1)


@TABLE.line("modules", "loads kernel modules or another kernel", _FILTER, tests=_CALLS)
def _modules(_facts: Facts) -> str:
    names = ("init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load")
    return worst(call(name, 0, 0, 0, 0, 0) for name in names)


@TABLE.line("machine", "reboots, swaps, sets quotas, watches the whole file system", _FILTER, tests=_CALLS)
def _machine(_facts: Facts) -> str:
    names = ("reboot", "swapon", "swapoff", "quotactl", "fanotify_init", "acct", "syslog", "vhangup")
    return worst(call(name, 0, 0, 0, 0) for name in names)


@TABLE.line("name-and-clock", "gives the machine another name or another time", _FILTER, tests=_CALLS)
def _name_and_clock(_facts: Facts) -> str:
    """Only the filter stops an agent of a box that root runs in the process engine. The name is the one that it has."""
    name = os.uname().nodename
    clocks = [call("settimeofday", 0, 0), call("clock_settime", 0, 0), call("adjtimex", 0), call("clock_adjtime", 0, 0)]
    return worst([call("sethostname", _text(name), len(name)), *clocks])


@TABLE.line("terminal", "types into a terminal (TIOCSTI)", _FILTER, tests=_CALLS)
def _terminal(_facts: Facts) -> str:
    byte = ctypes.create_string_buffer(b"x")
    return worst([call("ioctl", 0, number, ctypes.addressof(byte)) for number in (0x5412, 0x541C)])


@TABLE.line("foreign", "makes a call of the machine's other set", {"SIGSYS": "seccomp"},
            tests=("tests/unit/sandbox/test_confine.py::test_a_foreign_call_kills",))  # fmt: skip
def _foreign(_facts: Facts) -> str:
    machine = MACHINES.get(os.uname().machine)
    if machine is None or not machine.other_abi:
        return "SIGSYS"  # this machine has one set: there is nothing to call
    by_number(machine.other_abi | 39)
    return PASSED


@TABLE.line("shared-memory", "leaves System V memory, semaphores and queues behind for all", _FILTER, tests=_CALLS)
def _shared_memory(_facts: Facts) -> str:
    key = 0x0A9E47B0
    replies = [call("shmget", key, 4096, _NEW), call("semget", key, 1, _NEW), call("msgget", key, _NEW)]
    for kind, made in zip(("shm", "sem", "msg"), replies, strict=True):
        if made == PASSED:  # nothing is left behind by who only tries
            number = value(f"{kind}get", key, *((0, 0) if kind != "msg" else (0,)))
            call(f"{kind}ctl", number, 0, 0, 0)
    return worst(replies)


@TABLE.line("posix-queues", "leaves POSIX queues behind for all", _FILTER, tests=_CALLS)
def _posix_queues(_facts: Facts) -> str:
    name = _text("agentbox-attack")
    reply = call("mq_open", name, os.O_CREAT | os.O_RDWR, 0o600, 0)
    if reply == PASSED:
        call("mq_unlink", name)
    return reply


@TABLE.line("unowned-memory", "makes memory that no process owns (memfd_create)", _UNKNOWN,
            tests=("tests/unit/attack/test_battery.py::test_nothing_gets_through",))  # fmt: skip
def _unowned_memory(_facts: Facts) -> str:
    return worst([tried(os.memfd_create, "x"), call("memfd_secret", 0)])


@TABLE.line("setuid", "runs a copy of a program with a set-user bit", {"EPERM": "kernel", "same user": "kernel"},
            tests=("tests/runtime-contract/test_rc_016_hardening_from_inside.py::test_rc_016_no_setuid_file",))  # fmt: skip
def _setuid(_facts: Facts) -> str:
    """no_new_privs makes the bit mean nothing; what counts is that the flag is set."""
    with open("/proc/self/status", encoding="ascii") as stream:
        flag = next(line.split()[1] for line in stream if line.startswith("NoNewPrivs:"))
    return "same user" if flag == "1" else PASSED


_kept: list[ctypes.Array[ctypes.c_char]] = []


def _text(value: str) -> int:
    """The address of a text that stays."""
    _kept.append(ctypes.create_string_buffer(value.encode()))
    return ctypes.addressof(_kept[-1])

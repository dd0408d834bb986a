"""The second lock of an agent: a filter that refuses the calls which lead out of it past every path and port.

It says what is refused and lets the rest through: the box has an allow list of its own (config/seccomp), and in the
process engine an unmodified program must run. Sources: man 2 seccomp; numbers of the constants beside each.
"""

import ctypes
import errno
import platform
from functools import cache
from typing import Final

from agentbox.sandbox import bpf
from agentbox.sandbox.kernel import prctl
from agentbox.sandbox.syscalls import MACHINES, Machine

_PR_GET_SECCOMP = 21  # linux/prctl.h
_PR_SET_SECCOMP = 22
_MODE_FILTER = 2  # SECCOMP_MODE_FILTER, linux/seccomp.h

_UNIX, _INET, _INET6 = 1, 2, 10  # linux/socket.h
_STREAM, _DATAGRAM, _KIND = 1, 2, 0xF  # linux/net.h: SOCK_TYPE_MASK
_IP, _TCP, _UDP = 0, 6, 17
_FASTOPEN = 0x20000000  # MSG_FASTOPEN
_NAMESPACES = 0x7E020000  # the CLONE_NEW* flags that clone(2) takes, linux/sched.h
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C  # asm-generic/ioctls.h

# Out of another process, around the rules on paths, into the kernel's rarely walked corners, or beyond the agent's end.
REFUSED: Final = (
    *("ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp"),
    *("bpf", "perf_event_open", "userfaultfd", "unshare", "setns", "fanotify_init"),
    *("mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen", "fsconfig", "fsmount", "fspick"),
    *("mount_setattr", "swapon", "swapoff", "quotactl", "quotactl_fd", "name_to_handle_at", "open_by_handle_at"),
    *("init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "acct", "syslog"),
    *("shmget", "shmat", "shmctl", "shmdt", "semget", "semop", "semtimedop", "semctl"),
    *("msgget", "msgsnd", "msgrcv", "msgctl", "add_key", "request_key", "keyctl"),
    *("mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr"),
    *("modify_ldt", "iopl", "ioperm", "vhangup", "migrate_pages", "move_pages", "sched_setaffinity"),
)
# A library that gets ENOSYS falls back: to clone, whose flags a filter can read, and to plain reads and writes.
UNKNOWN: Final = ("clone3", "io_uring_setup", "io_uring_enter", "io_uring_register")
# The pid is the first or second argument; 0 is the caller.
ON_ONESELF: Final = {
    "prlimit64": 0, "setpriority": 1, "ioprio_set": 1, "sched_setscheduler": 0, "sched_setparam": 0, "sched_setattr": 0,
}  # fmt: skip
_SENDING: Final = {"sendto": 3, "sendmsg": 2, "sendmmsg": 3}  # where the flags are
OFFLINE: Final = ("connect", "bind", "listen", "accept", "accept4")


class _Program(ctypes.Structure):
    """`struct sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


@cache
def build(machine: Machine, *, connects: bool, network: bool) -> bytes:
    """The filter. `connects`: TCP connections to the ports that Landlock lets through; `network`: any TCP and UDP."""
    denied, no_such = bpf.leave(bpf.fail(errno.EPERM)), bpf.leave(bpf.fail(errno.ENOSYS))
    unreachable = bpf.leave(bpf.fail(errno.EACCES))
    closed = () if network else ("listen", "bind", "accept", "accept4") if connects else OFFLINE
    kinds = (_STREAM, _DATAGRAM) if network else (_STREAM,)
    protocols = (_IP, _TCP, _UDP) if network else (_IP, _TCP)
    rules = {
        **dict.fromkeys(REFUSED, denied),
        **dict.fromkeys(UNKNOWN, no_such),
        **dict.fromkeys(closed, unreachable),
        **{call: (*bpf.argument(at), *bpf.unless((0,), denied)) for call, at in ON_ONESELF.items()},
        **{call: (*bpf.argument(at), *bpf.when_any_bit(_FASTOPEN, unreachable)) for call, at in _SENDING.items()},
        "clone": (*bpf.argument(0), *bpf.when_any_bit(_NAMESPACES, denied)),
        "ioctl": (*bpf.argument(1), *bpf.when(_TIOCSTI, denied), *bpf.when(_TIOCLINUX, denied)),
        "socket": (
            *bpf.argument(0), *bpf.unless((_INET, _INET6), unreachable),
            *bpf.argument(1, _KIND), *bpf.unless(kinds, unreachable),
            *bpf.argument(2), *bpf.unless(protocols, unreachable),
        ),
        # A datagram socket of a pair can still be sent to a path, so a pair is a stream or nothing.
        "socketpair": (*bpf.argument(1, _KIND), *bpf.when(_DATAGRAM, unreachable)),
    }  # fmt: skip
    allow = bpf.leave(bpf.ALLOW)
    numbered = [(machine.number(call), body) for call, body in rules.items()]
    return bpf.assemble([
        bpf.architecture(), bpf.unless((machine.audit,), bpf.leave(bpf.KILL)),
        bpf.number(), bpf.when_any_bit(machine.other_abi, bpf.leave(bpf.KILL)) if machine.other_abi else (),
        *(bpf.when(at, (*body, *allow)) for at, body in numbered if at is not None),
        allow,
    ])  # fmt: skip


def install(program: bytes) -> None:
    """For this process and all that descend from it, for good. Needs no_new_privs. Raises OSError."""
    held = ctypes.create_string_buffer(program, len(program))
    described = _Program(len(program) // 8, ctypes.addressof(held))
    prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(described))


def installed() -> bool:
    """Whether the kernel says that a filter holds this process. The box's own counts too."""
    return prctl(_PR_GET_SECCOMP) == _MODE_FILTER


def of_this_machine() -> Machine:
    """Raises OSError on an architecture for which there is no filter."""
    machine = MACHINES.get(platform.machine())
    if machine is None:
        raise OSError(errno.ENOSYS, f"no filter of system calls for {platform.machine()}")
    return machine

"""The seccomp filter of an agent: refuses the calls that bypass the rules on paths and ports.

It is a deny list: the box has an allow list of its own (config/seccomp), and in the process engine
an unmodified program must run. Sources: man 2 seccomp; numbers of the constants beside each.
"""

import errno
from functools import cache
from typing import Final

from agentbox.core.linux.landlock import LAUNCHER_COOKIE
from agentbox.sandbox.seccomp import bpf
from agentbox.sandbox.seccomp.call_sets import (
    ADD_WATCH,
    BY_REFERENCE,
    EPOLL_CALLS,
    FORK_CALLS,
    INOTIFY_CALLS,
    LANDLOCK_CALLS,
    NETWORK_CALLS,
    OF_A_PATH,
    ON_ONESELF,
    REFUSED,
    SENDING,
    UNKNOWN,
)
from agentbox.sandbox.seccomp.installation import NEW_LISTENER
from agentbox.sandbox.seccomp.syscalls import AuditArchitecture

_PR_SET_DUMPABLE = 4

_INET, _INET6 = 2, 10  # linux/socket.h
_STREAM, _DATAGRAM, _KIND = 1, 2, 0xF  # linux/net.h: SOCK_TYPE_MASK
_IP, _TCP, _UDP = 0, 6, 17
FASTOPEN = 0x20000000  # MSG_FASTOPEN
_SOCKET, _INET6_LEVEL = 1, 41  # SOL_SOCKET, IPPROTO_IPV6
BUFFER_SIZE_OPTIONS: Final = (7, 8)  # SO_SNDBUF, SO_RCVBUF, asm-generic/socket.h
NAMESPACES = 0x7E020000  # the CLONE_NEW* flags that clone(2) takes, linux/sched.h
# A thread with its own descriptor table can hold files open that no scan of its process finds.
CLONE_THREAD, CLONE_FILES = 0x10000, 0x400  # CLONE_THREAD, CLONE_FILES, linux/sched.h
_UNSHARE = 2  # CLOSE_RANGE_UNSHARE, linux/close_range.h
TIOCSTI, TIOCLINUX = 0x5412, 0x541C  # asm-generic/ioctls.h
_SETLEASE, _NOTIFY = (
    1024,
    1026,
)  # F_SETLEASE, F_NOTIFY of linux/fcntl.h: a lease delays the next process that opens the file
# Permanent changes of a file through a read-only descriptor, which no rule on paths covers:
# linux/fs.h, linux/fsverity.h, linux/fscrypt.h, linux/msdos_fs.h, linux/btrfs.h.
_OF_A_FILE: Final = (
    *(
        0x40086602,
        0x40046602,
        0x40087602,
        0x40047602,
        0x401C5820,
    ),  # FS_IOC_SETFLAGS, _SETVERSION, _FSSETXATTR
    *(
        0x40806685,
        0x800C6613,
        0xC0506617,
        0xC0406618,
    ),  # FS_IOC_ENABLE_VERITY, _SET_ENCRYPTION_POLICY, keys
    0x40047211,  # FAT_IOCTL_SET_ATTRIBUTES
    *(
        0x50009401,
        0x5000940E,
        0x5000940F,
        0x50009417,
        0x50009418,
        0x4008941A,
        0x5000943F,
    ),  # BTRFS_IOC_SNAP_*
)

# Allowed socket options by level; all others are refused: some choose the network interface or the
# route. Options that would break what the reaper relies on succeed without effect: a port belongs
# to one agent, the reaper reads the target of a connection, and it knows the size of buffers (the
# kernel, too, sets a size other than requested). asm-generic/socket.h, linux/in.h, linux/in6.h,
# linux/tcp.h.
ALLOWED_OPTIONS: Final = {
    # REUSEADDR, BROADCAST, KEEPALIVE, OOBINLINE, PRIORITY, LINGER, PASSCRED, RCVLOWAT, both TIMEOs
    _SOCKET: (2, 6, 9, 10, 12, 13, 16, 18, 20, 21, 66, 67),
    _IP: (1, 2, 10, 11, 24),  # TOS, TTL, MTU_DISCOVER, RECVERR, BIND_ADDRESS_NO_PORT
    _TCP: (
        *range(1, 11),
        12,
        18,
        25,
        36,
    ),  # NODELAY to WINDOW_CLAMP, QUICKACK, USER_TIMEOUT, NOTSENT_LOWAT, INQ
    _INET6_LEVEL: (16, 23, 25, 26, 67),  # UNICAST_HOPS, MTU_DISCOVER, RECVERR, V6ONLY, TCLASS
}
IGNORED_OPTIONS: Final = {
    _SOCKET: (15, *BUFFER_SIZE_OPTIONS),
    _TCP: (30,),
}  # REUSEPORT; TCP_FASTOPEN_CONNECT
_SHARED_ANONYMOUS: Final = 0x21  # MAP_SHARED | MAP_ANONYMOUS, asm-generic/mman-common.h
_MAPPING: Final = 0x2F  # MAP_TYPE | MAP_ANONYMOUS

_SIGCHLD = 17  # asm-generic/signal.h
_POLL_ADD: Final = 1  # EPOLL_CTL_ADD, linux/eventpoll.h


@cache
def build(
    machine: AuditArchitecture,
    *,
    network: bool,
    forks: bool = True,
    cookie: tuple[int, int] = LAUNCHER_COOKIE,
) -> bytes:
    """The filter. `network`: the kernel performs any TCP and UDP. `forks`: new processes are
    counted. Refused calls go to the reaper, which chooses the errno and counts them, except
    `clone3` and BY_REFERENCE, which are tried for every thread and every copy of a file.
    """
    notify, succeed = bpf.return_action(bpf.NOTIFY), bpf.return_action(bpf.errno_action(0))
    allow = bpf.return_action(bpf.ALLOW)
    rules = {
        **dict.fromkeys(
            (
                *REFUSED,
                *UNKNOWN,
                *OF_A_PATH,
                *INOTIFY_CALLS,
                ADD_WATCH,
                *EPOLL_CALLS,
                "socketpair",
                *(() if network else NETWORK_CALLS),
                *(FORK_CALLS if forks else ()),
            ),
            notify,
        ),
        **dict.fromkeys(BY_REFERENCE, bpf.return_action(bpf.errno_action(errno.EINVAL))),
        **{call: on_oneself(call, notify) for call in ON_ONESELF},
        **{
            call: (*bpf.load_argument(at), *bpf.if_any_bit(FASTOPEN, notify))
            for call, at in SENDING.items()
        },
        "clone": notify
        if forks
        else (
            *bpf.load_argument(0),
            *bpf.if_any_bit(NAMESPACES, notify),
            *bpf.load_argument(0, CLONE_THREAD | CLONE_FILES),
            *bpf.if_equal(CLONE_THREAD, notify),
        ),
        "close_range": (*bpf.load_argument(2), *bpf.if_any_bit(_UNSHARE, notify)),
        "clone3": bpf.return_action(
            bpf.errno_action(errno.ENOSYS)
        ),  # libraries fall back to clone, whose flags a filter can read
        "ioctl": (
            *bpf.load_argument(1),
            *(
                step
                for request in (TIOCSTI, TIOCLINUX, *_OF_A_FILE)
                for step in bpf.if_equal(request, notify)
            ),
        ),
        "fcntl": (
            *bpf.load_argument(1),
            *bpf.if_equal(_SETLEASE, notify),
            *bpf.if_equal(_NOTIFY, notify),
        ),
        "mmap": (*bpf.load_argument(3, _MAPPING), *bpf.if_equal(_SHARED_ANONYMOUS, notify)),
        "epoll_ctl": (*bpf.load_argument(1), *bpf.if_equal(_POLL_ADD, notify)),
        **dict.fromkeys(LANDLOCK_CALLS, _unless_launcher(cookie, notify)),
        "setsockopt": options(notify, succeed, sizes_only=network),
        # Succeeds without effect: the reaper must be able to read the agent's memory.
        "prctl": (*bpf.load_argument(0), *bpf.if_equal(_PR_SET_DUMPABLE, succeed)),
        # The kernel allows one listener per tree; a filter without one may be added.
        "seccomp": (*bpf.load_argument(1), *bpf.if_any_bit(NEW_LISTENER, notify)),
    }
    if forks:
        rules["rt_sigaction"] = (
            *bpf.load_argument(0),
            *bpf.unless_any_of((_SIGCHLD,), allow),
            *bpf.load_argument(1),
            *bpf.unless_any_of((0,), notify),
        )
    if network:
        rules["socket"] = (
            *bpf.load_argument(0),
            *bpf.unless_any_of((_INET, _INET6), notify),
            *bpf.load_argument(1, _KIND),
            *bpf.unless_any_of((_STREAM, _DATAGRAM), notify),
            *bpf.load_argument(2),
            *bpf.unless_any_of((_IP, _TCP, _UDP), notify),
        )
    numbered = {
        at: _with_default(body, allow)
        for call, body in rules.items()
        if (at := machine.number(call)) is not None
    }
    return bpf.assemble(
        [
            bpf.load_architecture(),
            bpf.unless_any_of((machine.audit,), bpf.return_action(bpf.KILL)),
            bpf.load_number(),
            bpf.if_any_bit(machine.other_abi, bpf.return_action(bpf.KILL))
            if machine.other_abi
            else (),
            bpf.binary_search(numbered, allow),
        ]
    )


def on_oneself(call: str, refused: bpf.Instructions) -> bpf.Instructions:
    """The tests for a call of ON_ONESELF."""
    required = ON_ONESELF[call].items()
    return tuple(
        step
        for index, value in required
        for step in (*bpf.load_argument(index), *bpf.unless_any_of((value,), refused))
    )


def _unless_launcher(cookie: tuple[int, int], notify: bpf.Instructions) -> bpf.Instructions:
    steps: bpf.Instructions = ()
    for index, word in enumerate(cookie, 4):
        for load, half in (
            (bpf.load_argument(index), word & 0xFFFFFFFF),
            (bpf.load_argument_high(index), word >> 32),
        ):
            steps += (*load, *bpf.unless_any_of((half,), notify))
    return steps


def options(
    refused: bpf.Instructions, succeed: bpf.Instructions, *, sizes_only: bool
) -> bpf.Instructions:
    """The tests for setsockopt(2). `sizes_only`: any option may be set but buffer sizes."""
    allow = bpf.return_action(bpf.ALLOW)
    if sizes_only:
        sizes = (
            *bpf.load_argument(2),
            *(step for option in BUFFER_SIZE_OPTIONS for step in bpf.if_equal(option, succeed)),
            *allow,
        )
        return (*bpf.load_argument(1), *bpf.if_equal(_SOCKET, sizes))
    steps = bpf.load_argument(1)
    for level, passed in ALLOWED_OPTIONS.items():
        ignored = (
            step
            for option in IGNORED_OPTIONS.get(level, ())
            for step in bpf.if_equal(option, succeed)
        )
        steps += bpf.if_equal(
            level, (*bpf.load_argument(2), *ignored, *bpf.unless_any_of(passed, refused), *allow)
        )
    return (*steps, *refused)


def _with_default(body: bpf.Instructions, allow: bpf.Instructions) -> bpf.Instructions:
    """Tests of arguments end with `allow`."""
    return body if len(body) == 1 else (*body, *allow)

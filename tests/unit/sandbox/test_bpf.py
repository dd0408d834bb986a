"""The assembler and the filter, without a kernel: golden bytes, and every path through the program."""

import ctypes
import ctypes.util
import errno
import hashlib
import random
import struct

import pytest

from agentbox.sandbox.seccomp import agent_filter as seccomp
from agentbox.sandbox.seccomp import bpf, call_sets
from agentbox.sandbox.seccomp.syscalls import AARCH64, CALLS, MACHINES, X86_64, AuditArchitecture

DONE, ENOSYS, EINVAL = (
    bpf.errno_action(0),
    bpf.errno_action(errno.ENOSYS),
    bpf.errno_action(errno.EINVAL),
)
ASKED = bpf.NOTIFY
YOUNG = (
    "setxattrat",
    "removexattrat",
    "file_setattr",
)  # younger than a judge may be: Linux 6.13 and 6.17
UNHEARD = -1  # __NR_SCMP_ERROR
I386 = 0x40000003
OWN = (0x1111_1111_2222_2222, 0x3333_3333_4444_4444)


def run(
    program: bytes, call: int, arguments: tuple[int, ...] = (), architecture: int = X86_64.audit
) -> int:
    """What the kernel would answer: the eight operations of ours, as bpf(4) defines them."""
    data = struct.pack("<IIQ6Q", call & 0xFFFFFFFF, architecture, 0, *(*arguments, *(0,) * 6)[:6])
    steps = list(struct.iter_unpack("<HBBI", program))
    at = value = 0
    while True:
        code, holds, fails, operand = steps[at]
        at += 1
        match code:
            case 0x20:
                value = int(struct.unpack_from("<I", data, operand)[0])
            case 0x54:
                value &= operand
            case 0x05:
                at += operand
            case 0x35:
                at += holds if value >= operand else fails
            case 0x15:
                at += holds if value == operand else fails
            case 0x45:
                at += holds if value & operand else fails
            case 0x06:
                return int(operand)
            case _:
                raise AssertionError(hex(code))


def number(machine: AuditArchitecture, call: str) -> int:
    found = machine.number(call)
    assert found is not None
    return found


def test_golden_bytes() -> None:
    """A small program, step by step, as `struct sock_filter` has it."""
    body = bpf.return_action(bpf.errno_action(1))
    found = bpf.assemble(
        [
            bpf.load_number(),
            bpf.if_equal(7, body),
            bpf.load_argument(1, 0xF),
            bpf.unless_any_of((1, 2), body),
            bpf.return_action(bpf.ALLOW),
        ]
    )
    assert found.hex(" ", 8) == (
        "2000000000000000 1500000107000000 0600000001000500 2000000018000000 540000000f000000 "
        "1500020001000000 1500010002000000 0600000001000500 060000000000ff7f"
    )


def test_a_search_goes_to_each_body() -> None:
    """For maps of all sizes: adjacent numbers with one body and with several, the ends of the range,
    and bodies that a test cannot jump over."""
    for size in (0, 1, 2, 7, 8, 9, 30, 200):
        draw = random.Random(size)
        lengths = {value: 60 if value % 17 == 0 else 1 for value in draw.sample(range(400), size)}
        if size > 100:
            lengths |= {0: 1, 0xFFFF_FFFE: 1}
        bodies = {
            value: bpf.return_action(bpf.errno_action(value % 3)) * length
            for value, length in lengths.items()
        }
        program = bpf.assemble(
            [bpf.load_number(), bpf.binary_search(bodies, bpf.return_action(bpf.ALLOW))]
        )
        for value in (*range(402), 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFE, 0xFFFF_FFFF):
            assert run(program, value) == (
                bpf.errno_action(value % 3) if value in bodies else bpf.ALLOW
            ), (size, value)


@pytest.mark.parametrize(
    ("machine", "digest"), [(X86_64, "bee56903c2aaf0fa"), (AARCH64, "0a209542c493b0a6")]
)
def test_the_filter_is_the_reviewed_one(machine: AuditArchitecture, digest: str) -> None:
    """Changed bytes need a review of what they now allow."""
    found = seccomp.build(machine, network=False, cookie=OWN)
    assert hashlib.sha256(found).hexdigest()[:16] == digest


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
@pytest.mark.parametrize("network", [False, True])
def test_each_call_gets_its_answer(machine: AuditArchitecture, network: bool) -> None:
    """Refused calls go to the reaper; every other number passes, except those whose arguments are
    tested."""
    program = seccomp.build(machine, network=network)
    numbers = {machine.number(call): call for call in CALLS}
    for call in range(600):
        name = numbers.get(call, "")
        found = run(program, call, architecture=machine.audit)
        if name in (
            *call_sets.REFUSED,
            *call_sets.UNKNOWN,
            *call_sets.FORK_CALLS,
            *call_sets.OF_A_PATH,
            *call_sets.INOTIFY_CALLS,
            call_sets.ADD_WATCH,
            *call_sets.EPOLL_CALLS,
            *call_sets.LANDLOCK_CALLS,
            "clone",
            "socket",
            "socketpair",
        ):
            assert found == ASKED, name
        elif name in ("setpriority", "ioprio_set"):
            assert found == (bpf.ALLOW if name == "setpriority" else ASKED)
        elif name == "setsockopt":  # of no option
            assert found == (bpf.ALLOW if network else ASKED)
        elif name in call_sets.BY_REFERENCE:
            assert found == EINVAL
        elif name in call_sets.NETWORK_CALLS:
            assert found == (bpf.ALLOW if network else ASKED), name
        elif name == "clone3":
            assert found == ENOSYS
        else:
            assert found == bpf.ALLOW, name or call


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
@pytest.mark.parametrize(
    ("call", "arguments", "offline", "online"),
    [
        ("socket", (2, 1, 0), ASKED, bpf.ALLOW),
        ("socket", (10, 1 | 0o2000000, 6), ASKED, bpf.ALLOW),
        ("socket", (1, 1, 0), ASKED, ASKED),  # unix
        ("socket", (16, 3, 0), ASKED, ASKED),  # netlink
        ("socket", (17, 3, 0), ASKED, ASKED),  # packet
        ("socket", (40, 1, 0), ASKED, ASKED),  # vsock
        ("socket", (2, 2, 0), ASKED, bpf.ALLOW),  # udp
        ("socket", (2, 3, 1), ASKED, ASKED),  # raw
        ("socket", (2, 1, 262), ASKED, ASKED),  # mptcp
        ("socketpair", (1, 1, 0), ASKED, ASKED),
        ("sendto", (3, 0, 0, 0x20000000), ASKED, ASKED),
        ("sendmsg", (3, 0, 0x20004000), ASKED, ASKED),
        ("sendmmsg", (3, 0, 1, 0x20000000), ASKED, ASKED),
        ("sendto", (3, 0, 0, 0x4000), bpf.ALLOW, bpf.ALLOW),
        ("ioctl", (0, 0x5412), ASKED, ASKED),
        ("ioctl", (0, 0x1_0000_5412), ASKED, ASKED),
        ("ioctl", (0, 0x5401), bpf.ALLOW, bpf.ALLOW),
        ("setsockopt", (3, 1, 15), DONE, bpf.ALLOW),  # SO_REUSEPORT
        ("setsockopt", (3, 6, 30), DONE, bpf.ALLOW),  # TCP_FASTOPEN_CONNECT
        ("setsockopt", (3, 1, 2), bpf.ALLOW, bpf.ALLOW),
        ("setsockopt", (3, 1, 7), DONE, DONE),  # SO_SNDBUF
        ("setsockopt", (3, 1, 0x1_0000_0008), DONE, DONE),  # SO_RCVBUF
        ("setsockopt", (3, 1, 25), ASKED, bpf.ALLOW),  # SO_BINDTODEVICE
        ("setsockopt", (3, 1, 62), ASKED, bpf.ALLOW),  # SO_BINDTOIFINDEX
        ("setsockopt", (3, 1, 72), ASKED, bpf.ALLOW),  # SO_BUF_LOCK
        ("setsockopt", (3, 0, 1), bpf.ALLOW, bpf.ALLOW),  # IP_TOS
        ("setsockopt", (3, 0, 4), ASKED, bpf.ALLOW),  # IP_OPTIONS, source routes
        ("setsockopt", (3, 0, 35), ASKED, bpf.ALLOW),  # IP_ADD_MEMBERSHIP
        ("setsockopt", (3, 0, 50), ASKED, bpf.ALLOW),  # IP_UNICAST_IF
        ("setsockopt", (3, 41, 26), bpf.ALLOW, bpf.ALLOW),  # IPV6_V6ONLY
        ("setsockopt", (3, 41, 50), ASKED, bpf.ALLOW),  # IPV6_PKTINFO
        ("setsockopt", (3, 6, 1), bpf.ALLOW, bpf.ALLOW),  # TCP_NODELAY
        ("setsockopt", (3, 6, 31), ASKED, bpf.ALLOW),  # TCP_ULP
        ("setsockopt", (3, 282, 1), ASKED, bpf.ALLOW),  # SOL_TLS
        ("ioctl", (3, 0x40086602), ASKED, ASKED),  # FS_IOC_SETFLAGS
        ("ioctl", (3, 0x80086601), bpf.ALLOW, bpf.ALLOW),  # FS_IOC_GETFLAGS
        ("ioctl", (3, 0x40049409), bpf.ALLOW, bpf.ALLOW),  # FICLONE
        ("fcntl", (3, 1024), ASKED, ASKED),  # F_SETLEASE
        ("fcntl", (3, 1030), bpf.ALLOW, bpf.ALLOW),  # F_DUPFD_CLOEXEC
        ("prctl", (4, 0), DONE, DONE),  # PR_SET_DUMPABLE
        ("prctl", (15,), bpf.ALLOW, bpf.ALLOW),
        ("seccomp", (1, 8), ASKED, ASKED),
        ("seccomp", (1, 1), bpf.ALLOW, bpf.ALLOW),
        ("prlimit64", (0,), bpf.ALLOW, bpf.ALLOW),
        ("prlimit64", (1,), ASKED, ASKED),
        ("setpriority", (0, 77), ASKED, ASKED),
        ("setpriority", (0, 0), bpf.ALLOW, bpf.ALLOW),
        ("setpriority", (1, 0), ASKED, ASKED),  # PRIO_PGRP
        ("setpriority", (2, 0), ASKED, ASKED),  # PRIO_USER
        ("ioprio_set", (1, 0), bpf.ALLOW, bpf.ALLOW),
        ("ioprio_set", (1, 77), ASKED, ASKED),
        ("ioprio_set", (2, 0), ASKED, ASKED),  # IOPRIO_WHO_PGRP
        ("ioprio_set", (3, 0), ASKED, ASKED),  # IOPRIO_WHO_USER
        ("sched_setattr", (77,), ASKED, ASKED),
        ("epoll_ctl", (3, 1), ASKED, ASKED),
        ("epoll_ctl", (3, 2), bpf.ALLOW, bpf.ALLOW),  # EPOLL_CTL_DEL
        ("epoll_ctl", (3, 3), bpf.ALLOW, bpf.ALLOW),  # EPOLL_CTL_MOD
    ],
)  # fmt: skip
def test_arguments_decide(
    machine: AuditArchitecture, call: str, arguments: tuple[int, ...], offline: int, online: int
) -> None:
    """By the low word, which is all that the kernel reads of an int."""
    for network, wanted in ((False, offline), (True, online)):
        program = seccomp.build(machine, network=network)
        assert run(program, number(machine, call), arguments, machine.audit) == wanted


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
@pytest.mark.parametrize("call", call_sets.LANDLOCK_CALLS)
def test_the_launchers_own_rulesets_pass(machine: AuditArchitecture, call: str) -> None:
    """By both words; with a bit of either wrong the reaper decides."""
    program = seccomp.build(machine, network=False, cookie=OWN)
    answers = {
        run(
            program,
            number(machine, call),
            (0, 0, 0, 0, OWN[0] ^ first, OWN[1] ^ second),
            machine.audit,
        ): (
            first,
            second,
        )
        for first, second in ((1, 0), (1 << 63, 0), (0, 1), (0, 1 << 63))
    }
    assert list(answers) == [ASKED]
    assert run(program, number(machine, call), (0, 0, 0, 0, *OWN), machine.audit) == bpf.ALLOW


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_processes_that_nobody_counts_are_the_kernels(machine: AuditArchitecture) -> None:
    """Without a limit only the flags that create namespaces are tested."""
    program = seccomp.build(machine, network=False, forks=False)
    answers = {
        flags: run(program, number(machine, "clone"), (flags,), machine.audit)
        for flags in (0x01200011, 0x003D0F00, 0x10000011, 0x00020011)
    }
    assert list(answers.values()) == [bpf.ALLOW, bpf.ALLOW, ASKED, ASKED]


def test_another_architecture_is_the_end() -> None:
    """A 32-bit call, and one of the x32 ABI, kill the process."""
    program = seccomp.build(X86_64, network=False)
    assert run(program, 1, architecture=I386) == bpf.KILL
    assert run(program, 0x40000000 | 1) == bpf.KILL
    assert run(seccomp.build(AARCH64, network=False), 1) == bpf.KILL


def test_what_is_too_long_is_refused() -> None:
    """A jump is at most a byte and a program 4,096 steps."""
    with pytest.raises(ValueError, match="255"):
        bpf.if_equal(1, bpf.return_action(0) * 256)
    with pytest.raises(ValueError, match="255"):
        bpf.binary_search(
            {1: bpf.return_action(0) * 256, 3: bpf.return_action(1)}, bpf.return_action(2)
        )
    with pytest.raises(ValueError, match="4096"):
        bpf.assemble([bpf.return_action(0)] * 4097)


@pytest.mark.skipif(
    ctypes.util.find_library("seccomp") is None,
    reason="libseccomp, the judge, is not installed here",
)
@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_the_numbers_are_libseccomps(machine: AuditArchitecture) -> None:
    """The table of the other architecture agrees; below zero it has no such call."""
    judge = ctypes.CDLL(ctypes.util.find_library("seccomp"))
    for call in CALLS:
        theirs = judge.seccomp_syscall_resolve_name_arch(machine.audit, call.encode())
        if theirs == UNHEARD:
            assert call in YOUNG, call
        else:
            assert machine.number(call) == (theirs if theirs >= 0 else None), call

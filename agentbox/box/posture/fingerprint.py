"""The seccomp fingerprint: harmless calls whose results show whether agentbox's own list is in
force.

Each denied call has arguments that the kernel itself would answer with another error than EPERM
(invalid address, descriptor or process), so EPERM comes from the list. The stock lists of the
engines allow `get_robust_list`, `kcmp` and `ptrace`, so these distinguish agentbox's list;
`pidfd_open` is allowed by agentbox's list and shows that the check works.
"""

import ctypes
import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class SyscallCheck:
    """A system call by its numbers (linux/unistd.h) and the result under agentbox's list."""

    name: str
    numbers: Mapping[str, int]  # machine name of uname(2) -> number
    arguments: tuple[int, ...]
    answer: str


def _refused(name: str, x86_64: int, aarch64: int, *arguments: int) -> SyscallCheck:
    return SyscallCheck(name, {"x86_64": x86_64, "aarch64": aarch64}, arguments, "EPERM")


CHECKS: tuple[SyscallCheck, ...] = (
    _refused("add_key", 248, 217, 0, 0, 0, 0, 0),
    _refused("get_robust_list", 274, 100, -1, 0, 0),
    _refused("kcmp", 312, 272, 0, 0, 99, 0, 0),
    _refused("keyctl", 250, 219, -1),
    SyscallCheck("pidfd_open", {"x86_64": 434, "aarch64": 434}, (-1, 0), "EINVAL"),
    _refused("ptrace", 101, 117, -1, 0, 0, 0),
    _refused("request_key", 249, 218, 0, 0, 0, 0),
    _refused("setns", 308, 268, -1, 0),
)


def expected() -> str:
    """`add_key=EPERM,…`: the fingerprint under agentbox's list."""
    return ",".join(f"{call.name}={call.answer}" for call in CHECKS)


def measure() -> str:
    """The fingerprint of this kernel; on a machine without known numbers each result is `unknown
    machine`.
    """
    machine = os.uname().machine
    return ",".join(f"{call.name}={_result_of(call, machine)}" for call in CHECKS)


def _result_of(call: SyscallCheck, machine: str) -> str:
    number = call.numbers.get(machine)
    if number is None:
        return "unknown machine"
    ctypes.set_errno(0)
    result = _libc.syscall(number, *(ctypes.c_long(argument) for argument in call.arguments))
    return "ok" if result >= 0 else errno.errorcode.get(ctypes.get_errno(), "?")

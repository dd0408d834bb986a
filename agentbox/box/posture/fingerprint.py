"""The seccomp fingerprint: harmless calls whose answer tells whether the box's own list is in force.

Each refused call has arguments that the kernel itself would answer with another error than EPERM (invalid address,
descriptor or process), hence EPERM comes from the list. `get_robust_list`, `kcmp` and `ptrace` are allowed by the engines'
stock lists, so they tell our list from theirs; `pidfd_open` is allowed by ours, and shows that the question works.
"""

import ctypes
import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class SyscallCheck:
    """A system call by its numbers (linux/unistd.h) and what our list makes of it."""

    name: str
    numbers: Mapping[str, int]  # machine as uname(2) says -> number
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
    """`add_key=EPERM,…` under our list."""
    return ",".join(f"{call.name}={call.answer}" for call in CHECKS)


def measure() -> str:
    """The same text as this kernel answers now; a machine without numbers is answered with `unknown machine`."""
    machine = os.uname().machine
    return ",".join(f"{call.name}={_result_of(call, machine)}" for call in CHECKS)


def _result_of(call: SyscallCheck, machine: str) -> str:
    number = call.numbers.get(machine)
    if number is None:
        return "unknown machine"
    ctypes.set_errno(0)
    result = _libc.syscall(number, *(ctypes.c_long(argument) for argument in call.arguments))
    return "ok" if result >= 0 else errno.errorcode.get(ctypes.get_errno(), "?")

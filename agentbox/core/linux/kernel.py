"""Kernel calls that the standard library lacks, and the identity of a process across reboots.
Constants: linux/prctl.h, linux/capability.h.
"""

import ctypes
import os
import struct
from functools import cache
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_GET_NO_NEW_PRIVS = 39
_CAPABILITIES = struct.pack("=Ii", 0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, of this process
_SETS = struct.Struct("=6I")  # effective, permitted and inheritable: low words, then high words
DAC_OVERRIDE = 1 << 1

_libc = ctypes.CDLL(None, use_errno=True)


def checked(result: int) -> int:
    """The result of a call of libc. Raises OSError with its errno if it failed."""
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def prctl(option: int, value: int = 0, argument: int = 0) -> int:
    """prctl(2). Raises OSError."""
    result: int = _libc.prctl(option, *map(ctypes.c_ulong, (value, argument, 0, 0)))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl {option}: {os.strerror(number)}")
    return result


def become_subreaper() -> None:
    """Orphaned descendants become children of this process."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def set_parent_death_signal(number: int) -> None:
    """Requests a signal for when the thread that forked this process ends. The caller checks
    getppid() afterwards.
    """
    prctl(_PR_SET_PDEATHSIG, number)


def forbid_new_privileges() -> None:
    """No exec below this process can gain privileges any more."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def new_privileges_forbidden() -> bool:
    """Whether `forbid_new_privileges` is in force."""
    return prctl(_PR_GET_NO_NEW_PRIVS, 0) == 1


def drop_capabilities_except(mask: int) -> None:
    """Permanently drops all capabilities except those in `mask` (of the first 32). With
    no_new_privs even an exec by root does not regain them. Raises OSError.
    """
    data = ctypes.create_string_buffer(_SETS.size)
    _check(_libc.capget(_CAPABILITIES, data))
    _, permitted, _, _, permitted_high, _ = _SETS.unpack(data.raw)
    if permitted & ~mask or permitted_high:
        remaining = permitted & mask
        _check(_libc.capset(_CAPABILITIES, _SETS.pack(remaining, remaining, 0, 0, 0, 0)))


def _check(result: int) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"capabilities: {os.strerror(number)}")


@cache
def boot_id() -> str:
    """The kernel's id of this boot. A pid with a start time is valid within one boot only."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()

"""The few kernel calls that the standard library lacks, and the identity of a process across a reboot.

Constants: linux/prctl.h.
"""

import ctypes
import os
from functools import cache
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_GET_NO_NEW_PRIVS = 39

_libc = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, value: int = 0, third: int = 0) -> int:
    """prctl(2). Raises OSError."""
    found: int = _libc.prctl(option, *map(ctypes.c_ulong, (value, third, 0, 0)))
    if found < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl {option}: {os.strerror(number)}")
    return found


def become_subreaper() -> None:
    """Orphans among the descendants become children of this process."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def signal_me_when_parent_dies(number: int) -> None:
    """Asks for a signal when the thread that forked this process ends. The caller checks getppid() afterwards."""
    prctl(_PR_SET_PDEATHSIG, number)


def forbid_new_privileges() -> None:
    """No exec below this process grants anything any more."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def new_privileges_forbidden() -> bool:
    """What the kernel says about `forbid_new_privileges` now."""
    return prctl(_PR_GET_NO_NEW_PRIVS, 0) == 1


@cache
def boot_id() -> str:
    """The kernel's id of this boot. A pid and a start time mean nothing in another."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()

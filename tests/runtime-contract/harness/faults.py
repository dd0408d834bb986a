"""Faults that only the machine's owner can cause: a mount that becomes read-only."""

from __future__ import annotations

import subprocess
import sys

# setns(2) into a mount namespace needs a process with one thread; mount(2) flags are of linux/mount.h.
_REMOUNT = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
namespace, target, read_only = sys.argv[1], sys.argv[2].encode(), sys.argv[3] == "ro"
descriptor = os.open(namespace, os.O_RDONLY)
if libc.setns(descriptor, 0x00020000) != 0:
    raise OSError(ctypes.get_errno(), "setns")
if libc.mount(None, target, None, 0x20 | 0x1000 | (0x1 if read_only else 0), None) != 0:
    raise OSError(ctypes.get_errno(), "mount")
"""


def remount(pid: int, target: str, mode: str) -> None:
    """Makes the mount at `target`, as process `pid` of this host sees it, read-only (`ro`) or writable (`rw`)."""
    subprocess.run(
        [sys.executable, "-c", _REMOUNT, f"/proc/{pid}/ns/mnt", target, mode], check=True
    )

"""Switches to the box's user permanently: a control plane never runs as root."""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from agentbox.core.errors import AgentboxError, ExitCode

BOX_UID = 1000
_PR_SET_NO_NEW_PRIVS = 38  # linux/prctl.h
_PR_CAPBSET_READ, _PR_CAPBSET_DROP = 23, 24
_CAP_LAST = Path("/proc/sys/kernel/cap_last_cap")


def become_box_user() -> None:
    """Runs in the child before exec. As root: no groups, uid and gid 1000, empty bounding set; then
    no-new-privs.

    Raises OSError if the kernel refuses a step, so that nothing is executed with too many rights.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() == 0:
        for capability in range(int(_CAP_LAST.read_text()) + 1):
            if libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0 and _in_bounding_set(
                libc, capability
            ):
                raise OSError(ctypes.get_errno(), "prctl(PR_CAPBSET_DROP)")
        os.setgroups([])
        os.setresgid(BOX_UID, BOX_UID, BOX_UID)
        os.setresuid(BOX_UID, BOX_UID, BOX_UID)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_NO_NEW_PRIVS)")


def _in_bounding_set(libc: ctypes.CDLL, capability: int) -> bool:
    """True if the capability is in the bounding set of this process."""
    return bool(libc.prctl(_PR_CAPBSET_READ, capability, 0, 0, 0) != 0)


def require_readable(paths: Iterable[Path]) -> None:
    """Raises AgentboxError (exit 3) listing the paths that uid 1000 cannot read."""
    blocked = [f"{path} ({blocker})" for path in paths if (blocker := _blocking_directory(path))]
    if blocked:
        raise AgentboxError(
            "cannot run a box as processes of uid 1000: not readable: " + ", ".join(blocked),
            "Move the checkout to a directory that everybody can enter (such as /srv), or start "
            "agentbox as an ordinary user.",
            exit_code=ExitCode.PREREQUISITE,
        )


def _blocking_directory(path: Path) -> str:
    """Return the first directory on the path that uid 1000 may not enter, or ""."""
    for step in reversed([path, *path.parents]):
        status = step.stat()
        required = stat.S_IXOTH | (stat.S_IROTH if step == path else 0)
        if status.st_uid == BOX_UID:
            required <<= 6
        if status.st_mode & required != required:
            return f"blocked by {step}"
    return ""

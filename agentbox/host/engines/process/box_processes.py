"""The processes of a process-engine box: those with its prefix in their environment."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from agentbox.core.paths import PREFIX_VARIABLE

_POLL_SECONDS = 0.05


def box_pids(root: Path) -> list[int]:
    """Return the pids of all processes started below that prefix, as far as this user may see
    them.
    """
    marker = f"{PREFIX_VARIABLE}={root}".encode()
    pids = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if marker in (entry / "environ").read_bytes().split(b"\0"):
                pids.append(int(entry.name))
        except OSError:
            continue  # ended, or another user's
    return pids


def leader_pid(root: Path) -> int | None:
    """Return the process that became supervisord: it leads the session of the box."""
    for pid in box_pids(root):
        try:
            if os.getsid(pid) == pid and _runs_boot(pid):
                return pid
        except OSError:
            continue
    return None


def kill_all(root: Path, seconds: float) -> int:
    """Sends KILL to the remaining processes below a prefix and waits for their end. Returns how
    many there were.
    """
    count = len(remaining := box_pids(root))
    deadline = time.monotonic() + seconds
    while remaining and time.monotonic() < deadline:
        for pid in remaining:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(_POLL_SECONDS)
        remaining = box_pids(root)
    return count


def _runs_boot(pid: int) -> bool:
    command_line = Path(f"/proc/{pid}/cmdline").read_bytes()
    return b"agentbox.box.boot" in command_line or b"supervisor" in command_line

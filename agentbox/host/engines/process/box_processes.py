"""The processes of a process-engine box: those whose environment carries its prefix."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from agentbox.core.paths import PREFIX_VARIABLE

_POLL_SECONDS = 0.05


def box_pids(root: Path) -> list[int]:
    """Pids of every process that was started below that prefix, as far as this user may see."""
    marker = f"{PREFIX_VARIABLE}={root}".encode()
    pids = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if marker in (entry / "environ").read_bytes().split(b"\0"):
                pids.append(int(entry.name))
        except OSError:
            continue  # gone, or another user's
    return pids


def leader_pid(root: Path) -> int | None:
    """The process that became supervisord: it leads the session that the box was started in."""
    for pid in box_pids(root):
        try:
            if os.getsid(pid) == pid and _runs_boot(pid):
                return pid
        except OSError:
            continue
    return None


def kill_all(root: Path, seconds: float) -> int:
    """KILLs what is left below a prefix whose leader is gone, and waits until it is. Returns how many there were."""
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

"""Phase 1: every writable root of the plan accepts and stores a write, and has enough free
space.
"""

import errno
import os
from pathlib import Path

from agentbox.box.boot.context import Context
from agentbox.box.boot.errors import BootError
from agentbox.box.supervision.current_boot import lock_state
from agentbox.core.files.atomic import probe_file

PHASE, BUDGET_MS = "1", 40
# Bytes, or a quarter of the file system where that is less. With this much every store opens and
# can be read (a boot writes about 360 KiB, and with 128 KiB free some stores stay down); writes are
# rejected until there is more, and `/ready` reports the disk.
MIN_FREE_BYTES = 1 << 20
_PROBE = b"agentbox writable root probe\n"


class RootFull(Exception):
    """A root is writable, but has fewer `free` bytes than `needed`."""

    def __init__(self, free: int, needed: int) -> None:
        super().__init__(free, needed)
        self.free = free
        self.needed = needed


def run(context: Context) -> None:
    """Raises BootError naming the first root that fails and the kernel's reason, AgentboxError for
    a volume in use.
    """
    for root in context.plan.writable_roots:
        _check_root(context, root)
    os.close(lock_state(context.paths))  # the API locks it permanently


def check_writable(directory: Path) -> int:
    """Writes, syncs, reads back and unlinks a file; returns the free bytes. Raises OSError or
    RootFull.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with probe_file(directory) as descriptor:
        os.write(descriptor, _PROBE)
        os.fsync(descriptor)
        if os.pread(descriptor, len(_PROBE), 0) != _PROBE:
            raise OSError(errno.EIO, "the written data could not be read back")
    stats = os.statvfs(directory)
    free, needed = (
        stats.f_bavail * stats.f_frsize,
        min(MIN_FREE_BYTES, stats.f_blocks * stats.f_frsize // 4),
    )
    if free < needed:
        raise RootFull(free, needed)
    return free


def _check_root(context: Context, root: str) -> None:
    try:
        free = check_writable(context.paths.resolve(root))
    except RootFull as full:
        context.emit("WritableRootFailed", path=root, errno="ENOSPC", free_bytes=full.free)
        raise BootError(
            f"cannot use {root}: only {_format_size(full.free)} are free, "
            f"{_format_size(full.needed)} are needed",
            _free_space_hint(context, root),
        ) from full
    except OSError as error:
        context.emit("WritableRootFailed", path=root, errno=_errno_name(error), free_bytes=0)
        raise BootError(
            f"cannot write {root}: {error.strerror} ({_errno_name(error)})",
            _fix(context, root, error),
        ) from error
    context.emit("WritableRootReady", path=root, free_bytes=free)


def _errno_name(error: OSError) -> str:
    return errno.errorcode.get(error.errno or 0, str(error.errno))


def _format_size(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def _free_space_hint(context: Context, root: str) -> str:
    """The stored data is unchanged: only a temporary file was written."""
    volume = (
        "volume" if context.paths.is_container else f"file system, of {context.paths.resolve(root)}"
    )
    return (
        f"Free space on that {volume}; the data of the box is unchanged. "
        f"{_format_size(MIN_FREE_BYTES)} is enough to read it."
    )


def _fix(context: Context, root: str, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _free_space_hint(context, root)
    if error.errno == errno.EROFS:
        return f"Mount {root} writable."
    return f"Give uid 1000 a writable {root}: mount it as the generated compose file does."

"""mmap(2) of shared anonymous memory: counted by the requested size. Its pages stay when they leave
the page tables (MADV_DONTNEED) and when all but one of them are unmapped, so no process size
includes them.

The stored value is an upper bound: each call adds to it, and unmapping is not seen. The mappings of
the tree are read only when the bound reaches the limit.
"""

import errno
import os
from typing import Final

from agentbox.sandbox.launcher import tree
from agentbox.sandbox.syscalls.denials import DeniedCall
from agentbox.sandbox.syscalls.notification_fd import Notification, NotificationFd

_MAPPING_NAMES: Final = (
    b"/dev/zero (deleted)",
    b"/anon_hugepage (deleted)",
    b"[anon_shmem",
)  # proc(5), `maps`
_OUTSIDE_CALL_STATES: Final = "SZXTt"  # states of a thread outside of mmap


class SharedMappings:
    """The tree below the calling process, with `memory` bytes; the limit is one and a half times
    that, since part of a mapping is often never written. 0 means no limit.
    """

    def __init__(self, notify_fd: NotificationFd, memory: int) -> None:
        self._notify_fd, self._maximum = notify_fd, memory + memory // 2
        self._bytes_by_inode: dict[int, int] = {}  # bytes by inode
        self._unmatched: list[int] = []  # bytes of mappings whose inodes are unknown
        self._in_flight: dict[
            int, int
        ] = {}  # bytes by thread whose call was continued and that may not have mapped yet

    def map(self, notification: Notification) -> None:
        """Continues the call, or raises DeniedCall (ENOMEM) at the limit. The length is in a
        register and cannot change any more.
        """
        self._finish(notification.pid)  # a new call, so the previous one is finished
        length = notification.arguments[1]
        if self._maximum and self._total() + length > self._maximum:
            self._recount()
            if self._total() + length > self._maximum:
                raise DeniedCall(
                    errno.ENOMEM, "memory", f"shared mappings at the limit of {self._maximum} bytes"
                )
        self._in_flight[notification.pid] = length
        self._notify_fd.continue_syscall(notification)

    def _total(self) -> int:
        return (
            sum(self._bytes_by_inode.values())
            + sum(self._unmatched)
            + sum(self._in_flight.values())
        )

    def _finish(self, thread: int) -> None:
        if (length := self._in_flight.pop(thread, None)) is not None:
            self._unmatched.append(length)

    def _recount(self) -> None:
        """The sizes of new inodes are unknown: the largest requested ones are assumed."""
        for thread in list(self._in_flight):
            row = tree.read_thread(thread)
            if row is None or row.state in _OUTSIDE_CALL_STATES:
                self._finish(thread)
        try:
            existing = _mapped_inodes()
        except PermissionError:  # unreadable maps: all mappings may still exist
            return
        self._bytes_by_inode = {
            inode: length for inode, length in self._bytes_by_inode.items() if inode in existing
        }
        new_inodes = (inode for inode in existing if inode not in self._bytes_by_inode)
        self._bytes_by_inode |= dict(
            zip(new_inodes, sorted(self._unmatched, reverse=True), strict=False)
        )
        self._unmatched = []


def _mapped_inodes() -> set[int]:
    """The inodes of all shared anonymous memory that the tree has mapped. Raises
    PermissionError.
    """
    inodes = set()
    for row in tree.descendants(tree.scan(), [os.getpid()]):
        if row.state in "ZX":
            continue
        try:
            with open(f"/proc/{row.procfs_id}/maps", "rb") as stream:  # noqa: PTH123 - few imports
                fields = (line.split(None, 5) for line in stream)
                inodes |= {
                    int(row[4])
                    for row in fields
                    if len(row) > 5 and row[5].startswith(_MAPPING_NAMES)
                }
        except (FileNotFoundError, ProcessLookupError):  # exited
            continue
    return inodes

"""mmap(2) of shared anonymous memory: counted by what was asked for. Its pages stay when they leave every table
(MADV_DONTNEED) and when all but one of them are unmapped, so no size of a process has them.

What is kept is an upper bound: each answer adds, and no end is seen. Only where that bound meets the most are the mappings
of the tree read anew.
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
_OUTSIDE_CALL_STATES: Final = "SZXTt"  # states in which a thread is not inside of mmap


class SharedMappings:
    """Of the tree below the calling process, of `memory` bytes, and half as much again: a part is often never written.
    0 is no limit."""

    def __init__(self, notify_fd: NotificationFd, memory: int) -> None:
        self._notify_fd, self._maximum = notify_fd, memory + memory // 2
        self._bytes_by_inode: dict[int, int] = {}  # bytes by inode
        self._unmatched: list[int] = []  # bytes of those whose inodes are not known
        self._in_flight: dict[
            int, int
        ] = {}  # bytes by thread that was let go on and may not have mapped yet

    def map(self, notification: Notification) -> None:
        """Goes on, or raises Denied (ENOMEM) at the limit. The length is a register and cannot change any more."""
        self._finish(notification.pid)  # it asks again, so it is done with what it asked before
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
        """Which one has which inode nobody tells: the largest that were asked for are taken for those that are left."""
        for thread in list(self._in_flight):
            row = tree.read_thread(thread)
            if row is None or row.state in _OUTSIDE_CALL_STATES:
                self._finish(thread)
        try:
            existing = _mapped_inodes()
        except PermissionError:  # a program that hides its addresses: all may be there still
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
    """The inodes of all shared anonymous memory that the tree has mapped. Raises PermissionError."""
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
        except (FileNotFoundError, ProcessLookupError):  # gone
            continue
    return inodes

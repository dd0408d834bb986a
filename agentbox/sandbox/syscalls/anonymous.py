"""mmap(2) of shared anonymous memory: counted by what was asked for. Its pages stay when they leave every table
(MADV_DONTNEED) and when all but one of them are unmapped, so no size of a process has them.

What is kept is an upper bound: each answer adds, and no end is seen. Only where that bound meets the most are the mappings
of the tree read anew.
"""

import errno
import os
from typing import Final

from agentbox.sandbox.launcher import tree
from agentbox.sandbox.syscalls.denials import Denied
from agentbox.sandbox.syscalls.listener import Listener, Notice

_NAMES: Final = (b"/dev/zero (deleted)", b"/anon_hugepage (deleted)", b"[anon_shmem")  # proc(5), `maps`
_PAST_THE_CALL: Final = "SZXTt"  # states in which a thread is not inside of mmap


class SharedMappings:
    """Of the tree below the calling process, of `memory` bytes, and half as much again: a part is often never written.
    0 is no limit."""

    def __init__(self, listener: Listener, memory: int) -> None:
        self._listener, self._most = listener, memory + memory // 2
        self._held: dict[int, int] = {}  # bytes by inode
        self._asked: list[int] = []  # bytes of those whose inodes are not known
        self._under_way: dict[int, int] = {}  # bytes by thread that was let go on and may not have mapped yet

    def map(self, notice: Notice) -> None:
        """Goes on, or raises Denied (ENOMEM) at the limit. The length is a register and cannot change any more."""
        self._settle(notice.pid)  # it asks again, so it is done with what it asked before
        length = notice.arguments[1]
        if self._most and self._sum() + length > self._most:
            self._count()
            if self._sum() + length > self._most:
                raise Denied(errno.ENOMEM, "memory", f"shared mappings at the limit of {self._most} bytes")
        self._under_way[notice.pid] = length
        self._listener.go_on(notice)

    def _sum(self) -> int:
        return sum(self._held.values()) + sum(self._asked) + sum(self._under_way.values())

    def _settle(self, thread: int) -> None:
        if (length := self._under_way.pop(thread, None)) is not None:
            self._asked.append(length)

    def _count(self) -> None:
        """Which one has which inode nobody tells: the largest that were asked for are taken for those that are left."""
        for thread in list(self._under_way):
            row = tree.look_at_thread(thread)
            if row is None or row.state in _PAST_THE_CALL:
                self._settle(thread)
        try:
            there = _objects()
        except PermissionError:  # a program that hides its addresses: all may be there still
            return
        self._held = {inode: length for inode, length in self._held.items() if inode in there}
        fresh = (inode for inode in there if inode not in self._held)
        self._held |= dict(zip(fresh, sorted(self._asked, reverse=True), strict=False))
        self._asked = []


def _objects() -> set[int]:
    """The inodes of all shared anonymous memory that the tree has mapped. Raises PermissionError."""
    found = set()
    for row in tree.descendants(tree.scan(), [os.getpid()]):
        if row.state in "ZX":
            continue
        try:
            with open(f"/proc/{row.shown}/maps", "rb") as stream:  # noqa: PTH123 - few imports
                fields = (line.split(None, 5) for line in stream)
                found |= {int(row[4]) for row in fields if len(row) > 5 and row[5].startswith(_NAMES)}
        except (FileNotFoundError, ProcessLookupError):  # gone
            continue
    return found

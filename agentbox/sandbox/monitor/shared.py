"""What agents hold in /dev/shm, one folder for all: a file is of the trees that have it open or mapped when it is first seen.

tmpfs says nobody's name, so a file that is made, filled and let go between two looks is nobody's. One that a process beside all
agents holds too, and one that was there before, is never theirs. Only descriptors are followed, never a link.
"""

import contextlib
import os
import stat
import time
from collections.abc import Iterator, Mapping
from typing import Final

from agentbox.policy.limits.registry import INODE_BYTES

FOLDER: Final = "/dev/shm"
_REST: Final = 9  # times what a look took is at least between two, so that they cost a tenth of a CPU at most
_DEPTH: Final = 64  # folders in folders; what lies deeper is not looked at
_BLOCK: Final = 512  # of st_blocks (stat(2))
_OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_Inode = int


class Shared:
    """`folder` is a tmpfs."""

    def __init__(self, folder: str = FOLDER) -> None:
        self._folder = folder
        self._before = {row.st_ino for _, _, row in _files(folder)}
        self._owners: dict[_Inode, frozenset[int]] = {}  # by inode, pids of reapers
        self._stamp: tuple[int, int] = (0, 0)
        self._next = 0.0

    def due(self) -> bool:
        """Whether a file came or went, or room did, since the last look, and there is anything to look at."""
        if time.monotonic() < self._next:
            return False
        with contextlib.suppress(OSError):
            room = os.statvfs(self._folder)
            stamp = os.stat(self._folder).st_mtime_ns, room.f_bavail  # noqa: PTH116
            changed, self._stamp = stamp != self._stamp, stamp
            return changed and not _nothing_in(room)
        return False

    def again(self) -> None:
        """Makes the next look due: there is a tree that no look has met, and it may have filled the folder already."""
        self._stamp = (0, 0)

    def look(self, members: Mapping[int, list[int]], everybody: list[int]) -> dict[int, int]:
        """Bytes by reaper. `members`: pids of each tree; `everybody`: of all processes."""
        began = time.monotonic()
        held = {reaper: self._held(pids) for reaper, pids in members.items()}
        found = dict.fromkeys(members, 0)
        there = {row.st_ino: row for _, _, row in _files(self._folder)}
        self._own(there.keys() - self._owners.keys() - self._before, held, everybody, members)
        self._owners = {inode: owners for inode, owners in self._owners.items() if inode in there}
        for inode, owners in self._owners.items():
            for reaper in owners & found.keys():
                found[reaper] += _size(there[inode])
        for reaper, rows in held.items():
            found[reaper] += sum(_size(row) for row in rows.values() if row is not None and row.st_nlink == 0)
        self._next = time.monotonic() + _REST * (time.monotonic() - began)
        return found

    def forget(self, reaper: int) -> None:
        """Its tree is gone: what was its alone goes too."""
        left = {inode: owners - {reaper} for inode, owners in self._owners.items()}
        gone = {inode for inode, owners in left.items() if not owners}
        for folder, name, row in _files(self._folder) if gone else ():
            if row.st_ino in gone:
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=folder)
        self._owners = {inode: owners for inode, owners in left.items() if owners}

    def _own(
        self, fresh: set[_Inode], held: Mapping[int, Mapping[_Inode, object]], everybody: list[int],
        members: Mapping[int, list[int]],
    ) -> None:  # fmt: skip
        owned = {inode: frozenset(reaper for reaper, rows in held.items() if inode in rows) for inode in fresh}
        owned = {inode: owners for inode, owners in owned.items() if owners}
        if not owned:
            return
        agents = {pid for pids in members.values() for pid in pids}
        strangers = self._held([pid for pid in everybody if pid not in agents])
        self._owners |= {inode: owners for inode, owners in owned.items() if inode not in strangers}

    def _held(self, processes: list[int]) -> dict[_Inode, os.stat_result | None]:
        """Files of the folder that these have open, and, as None, those that they have mapped only."""
        found: dict[_Inode, os.stat_result | None] = {}
        for pid in processes:
            found |= dict.fromkeys(self._mapped(pid) - found.keys())
            with contextlib.suppress(OSError):  # gone, or not ours to look at
                for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
                    with contextlib.suppress(OSError):
                        path = f"/proc/{pid}/fd/{name}"
                        if os.readlink(path).startswith(f"{self._folder}/"):  # noqa: PTH115
                            row = os.stat(path)  # noqa: PTH116
                            found[row.st_ino] = row
        return found

    def _mapped(self, pid: int) -> set[_Inode]:
        """proc(5), `maps`: address, rights, offset, device, inode, path."""
        mark = f" {self._folder}/".encode()
        with contextlib.suppress(OSError), open(f"/proc/{pid}/maps", "rb") as stream:  # noqa: PTH123
            return {int(line.split(None, 5)[4]) for line in stream if mark in line}
        return set()


def _nothing_in(room: os.statvfs_result) -> bool:
    """Whether that tmpfs holds its own folder and no more: neither files, nor deleted ones that are open or mapped."""
    return room.f_bfree == room.f_blocks and room.f_ffree >= room.f_files - 1


def _size(row: os.stat_result) -> int:
    return row.st_blocks * _BLOCK + INODE_BYTES


def _files(top: str) -> Iterator[tuple[int, str, os.stat_result]]:
    """(descriptor of its folder, name, status) of each file below; the descriptor is open until the next one is asked for."""
    with contextlib.suppress(OSError):
        folder = os.open(top, _OPEN)
        yield from _below(folder, _DEPTH)


def _below(folder: int, deep: int) -> Iterator[tuple[int, str, os.stat_result]]:
    try:
        names = os.listdir(folder)
        for name in names:
            with contextlib.suppress(OSError):  # gone meanwhile, or closed
                row = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if not stat.S_ISDIR(row.st_mode):
                    yield folder, name, row
                elif deep:
                    yield from _below(os.open(name, _OPEN, dir_fd=folder), deep - 1)
    finally:
        os.close(folder)

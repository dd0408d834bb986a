"""Usage of /dev/shm, one directory for all agents: a file belongs to the trees that have it open or
mapped when it is first seen.

tmpfs does not tell who created a file, so a file that is created, filled and closed between two
polls has no owner. A file that a process outside of all agents holds too, or that existed before,
never belongs to an agent. Only descriptors are followed, never links.
"""

import contextlib
import os
import stat
import time
from collections.abc import Iterator, Mapping
from typing import Final

from agentbox.policy.limits.registry import INODE_BYTES

DIRECTORY: Final = "/dev/shm"
_REST_FACTOR: Final = (
    9  # pause after a poll, as a multiple of its duration: a tenth of a CPU at most
)
_MAX_DEPTH: Final = 64  # nested directories; deeper ones are ignored
_BLOCK: Final = 512  # of st_blocks (stat(2))
_OPEN_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_Inode = int


class SharedMemoryUsage:
    """`directory` is a tmpfs."""

    def __init__(self, directory: str = DIRECTORY) -> None:
        self._directory = directory
        self._preexisting = {row.st_ino for _, _, row in _files(directory)}
        self._owners: dict[_Inode, frozenset[int]] = {}  # by inode: pids of reapers
        self._stamp: tuple[int, int] = (0, 0)
        self._next_poll = 0.0

    def is_due(self) -> bool:
        """Whether the directory is not empty and files or free space changed since the
        last poll.
        """
        if time.monotonic() < self._next_poll:
            return False
        with contextlib.suppress(OSError):
            capacity = os.statvfs(self._directory)
            stamp = os.stat(self._directory).st_mtime_ns, capacity.f_bavail  # noqa: PTH116
            changed, self._stamp = stamp != self._stamp, stamp
            return changed and not _is_empty(capacity)
        return False

    def invalidate(self) -> None:
        """Makes the next poll due: a new tree may already have filled the directory."""
        self._stamp = (0, 0)

    def poll(self, members: Mapping[int, list[int]], all_pids: list[int]) -> dict[int, int]:
        """Bytes by reaper. `members`: pids of each tree; `all_pids`: of all processes."""
        started = time.monotonic()
        open_by_reaper = {reaper: self._open_files(pids) for reaper, pids in members.items()}
        used = dict.fromkeys(members, 0)
        existing = {row.st_ino: row for _, _, row in _files(self._directory)}
        self._assign_owners(
            existing.keys() - self._owners.keys() - self._preexisting,
            open_by_reaper,
            all_pids,
            members,
        )
        self._owners = {
            inode: owners for inode, owners in self._owners.items() if inode in existing
        }
        for inode, owners in self._owners.items():
            for reaper in owners & used.keys():
                used[reaper] += _size(existing[inode])
        for reaper, rows in open_by_reaper.items():
            used[reaper] += sum(
                _size(row) for row in rows.values() if row is not None and row.st_nlink == 0
            )
        self._next_poll = time.monotonic() + _REST_FACTOR * (time.monotonic() - started)
        return used

    def discard(self, reaper: int) -> None:
        """Deletes the files that belonged only to an ended tree."""
        remaining = {inode: owners - {reaper} for inode, owners in self._owners.items()}
        removed = {inode for inode, owners in remaining.items() if not owners}
        for directory_fd, name, row in _files(self._directory) if removed else ():
            if row.st_ino in removed:
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=directory_fd)
        self._owners = {inode: owners for inode, owners in remaining.items() if owners}

    def _assign_owners(
        self,
        new_inodes: set[_Inode],
        open_by_reaper: Mapping[int, Mapping[_Inode, object]],
        all_pids: list[int],
        members: Mapping[int, list[int]],
    ) -> None:
        owned = {
            inode: frozenset(reaper for reaper, rows in open_by_reaper.items() if inode in rows)
            for inode in new_inodes
        }
        owned = {inode: owners for inode, owners in owned.items() if owners}
        if not owned:
            return
        agents = {pid for pids in members.values() for pid in pids}
        foreign = self._open_files([pid for pid in all_pids if pid not in agents])
        self._owners |= {inode: owners for inode, owners in owned.items() if inode not in foreign}

    def _open_files(self, processes: list[int]) -> dict[_Inode, os.stat_result | None]:
        """Files of the directory that these processes have open, and, as None, those that they only
        mapped.
        """
        files: dict[_Inode, os.stat_result | None] = {}
        for pid in processes:
            files |= dict.fromkeys(self._mapped_inodes(pid) - files.keys())
            with contextlib.suppress(OSError):  # exited, or not readable
                for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
                    with contextlib.suppress(OSError):
                        path = f"/proc/{pid}/fd/{name}"
                        if os.readlink(path).startswith(f"{self._directory}/"):  # noqa: PTH115
                            row = os.stat(path)  # noqa: PTH116
                            files[row.st_ino] = row
        return files

    def _mapped_inodes(self, pid: int) -> set[_Inode]:
        """proc(5), `maps`: address, rights, offset, device, inode, path."""
        marker = f" {self._directory}/".encode()
        maps = f"/proc/{pid}/maps"
        with contextlib.suppress(OSError), open(maps, "rb") as stream:  # noqa: PTH123
            return {int(line.split(None, 5)[4]) for line in stream if marker in line}
        return set()


def _is_empty(capacity: os.statvfs_result) -> bool:
    """Whether the tmpfs has only its root: no files, and no deleted ones that are open
    or mapped.
    """
    return capacity.f_bfree == capacity.f_blocks and capacity.f_ffree >= capacity.f_files - 1


def _size(row: os.stat_result) -> int:
    return row.st_blocks * _BLOCK + INODE_BYTES


def _files(top: str) -> Iterator[tuple[int, str, os.stat_result]]:
    """(descriptor of its directory, name, status) of each file below; the descriptor is open until
    the next item.
    """
    with contextlib.suppress(OSError):
        directory_fd = os.open(top, _OPEN_FLAGS)
        yield from _walk(directory_fd, _MAX_DEPTH)


def _walk(directory_fd: int, depth: int) -> Iterator[tuple[int, str, os.stat_result]]:
    try:
        names = os.listdir(directory_fd)
        for name in names:
            with contextlib.suppress(OSError):  # removed meanwhile, or not readable
                row = os.stat(name, dir_fd=directory_fd, follow_symlinks=False)
                if not stat.S_ISDIR(row.st_mode):
                    yield directory_fd, name, row
                elif depth:
                    yield from _walk(os.open(name, _OPEN_FLAGS, dir_fd=directory_fd), depth - 1)
    finally:
        os.close(directory_fd)

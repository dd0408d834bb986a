"""What an agent's private folder holds on disk: blocks, not lengths, each file once, those too that are deleted but open.

Only descriptors are followed, never a path twice and never a link: an agent may exchange any name while it is read.
"""

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from agentbox.policy.limits.registry import INODE_BYTES

TEMPORARY = ("home", "tmp")  # top folders that count as `tmp`; all else counts as `branch_disk`
MOST_DEPTH = (
    256  # folders in folders, far beyond any project; a deeper one cannot be measured and counts as TOO_DEEP bytes
)
TOO_DEEP = 1 << 50
_BLOCK = 512  # of st_blocks (stat(2))
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_WAITING = b"scm_fds:"
_DELETED = " (deleted)"  # proc(5), of /proc/<pid>/fd


@dataclass
class Used:
    """Bytes."""

    tmp: int = 0
    branch_disk: int = 0
    under_way: bool = False  # descriptors are, in sockets of its processes: what they are open on no look finds
    _seen: set[tuple[int, int]] = field(default_factory=set, repr=False)

    def add(self, found: os.stat_result, *, temporary: bool) -> None:
        """A file or folder; the second name of one costs nothing."""
        if found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode):
            if (found.st_dev, found.st_ino) in self._seen:
                return
            self._seen.add((found.st_dev, found.st_ino))
        self.book(found.st_blocks * _BLOCK + INODE_BYTES, temporary=temporary)

    def book(self, size: int, *, temporary: bool) -> None:
        """Bytes of one of the two kinds."""
        if temporary:
            self.tmp += size
        else:
            self.branch_disk += size


def used(folder: str, processes: Iterable[int] = ()) -> Used:
    """Of everything below `folder`, and of the deleted files of it that `processes` hold open. Empty when it is gone."""
    found = Used()
    with contextlib.suppress(OSError):
        top = os.open(folder, _FOLDER)
        try:
            _walk(top, found)
        finally:
            os.close(top)
    open_now = descriptors(processes)
    sockets = [path for path, target in open_now if target.startswith("socket:")]
    found.under_way = any(map(carries, sockets))
    for temporary, row in _deleted(folder, open_now):
        found.add(row, temporary=temporary)
    found.under_way = found.under_way or any(map(carries, sockets))  # what was sent away between the two
    return found


def _walk(top: int, found: Used) -> None:
    """Depth first; one descriptor a level."""
    levels: list[tuple[int, list[str]]] = [(top, _read(top, found, temporary=None))]
    temporary = False
    while levels:
        folder, below = levels[-1]
        if not below:
            levels.pop()
            if levels:
                os.close(folder)
            continue
        name = below.pop()
        if len(levels) == 1:
            temporary = name in TEMPORARY
        if len(levels) > MOST_DEPTH:
            found.book(TOO_DEEP, temporary=temporary)
            _close(levels)
            return
        if (opened := _enter(folder, name)) >= 0:
            levels.append((opened, _read(opened, found, temporary=temporary)))


def _close(levels: list[tuple[int, list[str]]]) -> None:
    for folder, _ in levels[1:]:
        os.close(folder)


def _read(folder: int, found: Used, *, temporary: bool | None) -> list[str]:
    """Adds what lies directly in a folder and returns the names of the folders in it. `temporary` None: at the top."""
    below = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            try:
                row = entry.stat(follow_symlinks=False)
            except OSError:  # gone meanwhile
                continue
            found.add(row, temporary=entry.name in TEMPORARY if temporary is None else temporary)
            if stat.S_ISDIR(row.st_mode):
                below.append(entry.name)
    return below


def _enter(folder: int, name: str) -> int:
    """A descriptor of a folder that the agent may have closed to itself; -1 when it is gone."""
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except PermissionError:
        return _open_closed(folder, name)
    except OSError:
        return -1


def _open_closed(folder: int, name: str) -> int:
    try:
        handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return -1
    try:
        os.chmod(f"/proc/self/fd/{handle}", stat.S_IRWXU)  # noqa: PTH101 - the descriptor, whatever its name is by now
        return os.open(".", _FOLDER, dir_fd=handle)
    except OSError:
        return -1
    finally:
        os.close(handle)


def _deleted(folder: str, open_now: Iterable[tuple[str, str]]) -> Iterator[tuple[bool, os.stat_result]]:
    """(temporary, status) of open files without a name that lay below `folder`; one held by several comes once."""
    seen = set()
    for path, target in open_now:
        if target.startswith(f"{folder}/") and target.endswith(_DELETED):
            with contextlib.suppress(OSError):  # closed meanwhile
                row = os.stat(path)  # noqa: PTH116 - a Path would cost more than the call
                if row.st_nlink == 0 and (row.st_dev, row.st_ino) not in seen:
                    seen.add((row.st_dev, row.st_ino))
                    yield target[len(folder) + 1 :].partition("/")[0] in TEMPORARY, row


def descriptors(processes: Iterable[int]) -> list[tuple[str, str]]:
    """The path of each descriptor that these processes have, and what it is open on."""
    return [found for pid in processes for found in _descriptors(pid)]


def _descriptors(pid: int) -> Iterator[tuple[str, str]]:
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
            path = f"/proc/{pid}/fd/{name}"
            with contextlib.suppress(OSError):  # closed meanwhile
                yield path, os.readlink(path)  # noqa: PTH115


def carries(path: str) -> bool:
    """Whether descriptors wait in that socket (proc(5), `fdinfo`; Linux 5.19 and later say it)."""
    with contextlib.suppress(OSError), open(path.replace("/fd/", "/fdinfo/"), "rb") as stream:  # noqa: PTH123
        return any(int(line[len(_WAITING) :]) > 0 for line in stream if line.startswith(_WAITING))
    return False


def written(processes: Iterable[int]) -> int:
    """Bytes that these processes wrote, or dirtied, so far (proc(5), `io`). 0 where this kernel does not count."""
    total = 0
    for pid in processes:
        with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/io", "rb") as stream:  # noqa: PTH123
            counts = dict(line.split(b": ") for line in stream)
            total += max(int(counts[b"wchar"]), int(counts[b"write_bytes"]))
    return total

"""Disk usage of an agent's private directory: blocks, not lengths, each file once, deleted open
files included.

Only descriptors are followed, never a path twice and never a link: an agent may replace any name
during the walk.
"""

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from agentbox.policy.limits.registry import INODE_BYTES

TEMPORARY_DIRECTORIES = (
    "home",
    "tmp",
)  # top-level directories that count as `tmp`; the rest counts as `branch_disk`
# nested directories, far more than in any project; a deeper one counts as TOO_DEEP_BYTES
MAX_DEPTH = 256
TOO_DEEP_BYTES = 1 << 50
_BLOCK = 512  # of st_blocks (stat(2))
_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_IN_FLIGHT_PREFIX = b"scm_fds:"
_DELETED_SUFFIX = " (deleted)"  # proc(5), of /proc/<pid>/fd


@dataclass
class DiskUsage:
    """Bytes."""

    tmp: int = 0
    branch_disk: int = 0
    in_flight: bool = False  # descriptors are in flight in its sockets: no scan finds the files
    _counted: set[tuple[int, int]] = field(default_factory=set, repr=False)

    def add(self, status: os.stat_result, *, temporary: bool) -> None:
        """Adds a file or directory; further names of a file are free."""
        if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
            if (status.st_dev, status.st_ino) in self._counted:
                return
            self._counted.add((status.st_dev, status.st_ino))
        self.add_bytes(status.st_blocks * _BLOCK + INODE_BYTES, temporary=temporary)

    def add_bytes(self, size: int, *, temporary: bool) -> None:
        """Adds bytes of one of the two kinds."""
        if temporary:
            self.tmp += size
        else:
            self.branch_disk += size


def measure_usage(directory: str, processes: Iterable[int] = ()) -> DiskUsage:
    """Usage of everything below `directory`, and of its deleted files that `processes` hold open.
    Zero if it does not exist.
    """
    usage = DiskUsage()
    with contextlib.suppress(OSError):
        top_fd = os.open(directory, _DIRECTORY_FLAGS)
        try:
            _walk(top_fd, usage)
        finally:
            os.close(top_fd)
    open_files = descriptors(processes)
    sockets = [path for path, target in open_files if target.startswith("socket:")]
    usage.in_flight = any(map(has_in_flight_fds, sockets))
    for temporary, status in _deleted_files(directory, open_files):
        usage.add(status, temporary=temporary)
    usage.in_flight = usage.in_flight or any(
        map(has_in_flight_fds, sockets)
    )  # sent between the two reads
    return usage


def _walk(top_fd: int, usage: DiskUsage) -> None:
    """Depth first; one descriptor per level."""
    levels: list[tuple[int, list[str]]] = [(top_fd, _read_directory(top_fd, usage, temporary=None))]
    temporary = False
    while levels:
        directory_fd, pending = levels[-1]
        if not pending:
            levels.pop()
            if levels:
                os.close(directory_fd)
            continue
        name = pending.pop()
        if len(levels) == 1:
            temporary = name in TEMPORARY_DIRECTORIES
        if len(levels) > MAX_DEPTH:
            usage.add_bytes(TOO_DEEP_BYTES, temporary=temporary)
            _close_levels(levels)
            return
        if (opened := _open_subdirectory(directory_fd, name)) >= 0:
            levels.append((opened, _read_directory(opened, usage, temporary=temporary)))


def _close_levels(levels: list[tuple[int, list[str]]]) -> None:
    for directory_fd, _ in levels[1:]:
        os.close(directory_fd)


def _read_directory(directory_fd: int, usage: DiskUsage, *, temporary: bool | None) -> list[str]:
    """Adds the entries of a directory and returns the names of its subdirectories. `temporary` is
    None at the top.
    """
    subdirectories = []
    with contextlib.suppress(OSError), os.scandir(directory_fd) as entries:
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:  # removed meanwhile
                continue
            usage.add(
                status,
                temporary=entry.name in TEMPORARY_DIRECTORIES if temporary is None else temporary,
            )
            if stat.S_ISDIR(status.st_mode):
                subdirectories.append(entry.name)
    return subdirectories


def _open_subdirectory(directory_fd: int, name: str) -> int:
    """A descriptor of a directory, even if the agent removed its own rights; -1 if it
    was removed.
    """
    try:
        return os.open(name, _DIRECTORY_FLAGS, dir_fd=directory_fd)
    except PermissionError:
        return _open_unreadable(directory_fd, name)
    except OSError:
        return -1


def _open_unreadable(directory_fd: int, name: str) -> int:
    try:
        handle = os.open(
            name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory_fd
        )
    except OSError:
        return -1
    try:
        # The descriptor, whatever its name is now.
        os.chmod(f"/proc/self/fd/{handle}", stat.S_IRWXU)  # noqa: PTH101
        return os.open(".", _DIRECTORY_FLAGS, dir_fd=handle)
    except OSError:
        return -1
    finally:
        os.close(handle)


def _deleted_files(
    directory: str, open_files: Iterable[tuple[str, str]]
) -> Iterator[tuple[bool, os.stat_result]]:
    """(temporary, status) of open deleted files that were below `directory`; each file once."""
    seen = set()
    for path, target in open_files:
        if target.startswith(f"{directory}/") and target.endswith(_DELETED_SUFFIX):
            with contextlib.suppress(OSError):  # closed meanwhile
                status = os.stat(path)  # noqa: PTH116 - a Path would cost more than the call
                if status.st_nlink == 0 and (status.st_dev, status.st_ino) not in seen:
                    seen.add((status.st_dev, status.st_ino))
                    yield (
                        target[len(directory) + 1 :].partition("/")[0] in TEMPORARY_DIRECTORIES,
                        status,
                    )


def descriptors(processes: Iterable[int]) -> list[tuple[str, str]]:
    """The path of each descriptor of these processes, and its target."""
    return [entry for pid in processes for entry in _read_descriptors(pid)]


def _read_descriptors(pid: int) -> Iterator[tuple[str, str]]:
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
            path = f"/proc/{pid}/fd/{name}"
            with contextlib.suppress(OSError):  # closed meanwhile
                yield path, os.readlink(path)  # noqa: PTH115


def has_in_flight_fds(path: str) -> bool:
    """Whether descriptors wait in that socket (proc(5), `fdinfo`; Linux 5.19 and later)."""
    info = path.replace("/fd/", "/fdinfo/")
    with contextlib.suppress(OSError), open(info, "rb") as stream:  # noqa: PTH123
        return any(
            int(line[len(_IN_FLIGHT_PREFIX) :]) > 0
            for line in stream
            if line.startswith(_IN_FLIGHT_PREFIX)
        )
    return False


def written_bytes(processes: Iterable[int]) -> int:
    """Bytes that these processes wrote or dirtied so far (proc(5), `io`). 0 if this kernel does not
    count them.
    """
    total = 0
    for pid in processes:
        path = f"/proc/{pid}/io"
        with contextlib.suppress(OSError, ValueError), open(path, "rb") as stream:  # noqa: PTH123
            counts = dict(line.split(b": ") for line in stream)
            total += max(int(counts[b"wchar"]), int(counts[b"write_bytes"]))
    return total

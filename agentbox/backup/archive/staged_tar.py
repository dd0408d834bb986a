"""The tar of a staging directory: equal files give equal bytes. POSIX.1-2001 pax, entries in the
order of their paths' bytes, owner 0:0 without names, modes reduced to the owner's bits. A file's
time is its own, but never later than the cut: what was copied after it has the time of the cut.
"""

import hashlib
import os
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from agentbox.backup.errors import UNUSABLE, BackupError
from agentbox.contracts.backups import SnapshotMember
from agentbox.core.files.member_names import member_name

_BLOCK: Final = 1 << 18
_END: Final = bytes(2 * tarfile.BLOCKSIZE)


@dataclass(slots=True)
class StagedTar:
    """The tar of `root`, in chunks; `members` has each file once its bytes were read."""

    root: Path
    cut_time: datetime
    members: list[SnapshotMember] = field(default_factory=list)
    _names: set[str] = field(default_factory=set)

    def total_bytes(self) -> int:
        """Size of all files and of their headers: an upper bound of the archive's, but for the
        64 bytes that age adds to each recipient and 16 to each 64 KiB.
        """
        total = 0
        for _path, status in self._entries():
            total += 3 * tarfile.BLOCKSIZE + status.st_size + tarfile.BLOCKSIZE
        return total + total // 1024 + (1 << 16)

    def chunks(self) -> Iterator[bytes]:
        """Raises BackupError for anything but files, folders and links, for a file that changes
        meanwhile, and for two of one name in the head; OSError.
        """
        for path, status in self._entries():
            info = self._header(path, status)
            yield info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
            if info.isreg():
                yield from self._body(path, info.size)
        yield _END

    def _entries(self) -> Iterator[tuple[str, os.stat_result]]:
        """Relative paths in the order of their bytes, a folder before what it holds."""
        pending = [("", self.root.lstat())]
        while pending:
            path, status = pending.pop()
            if path:
                yield path, status
            if stat.S_ISDIR(status.st_mode):
                below = [
                    (
                        f"{path}/{entry.name}" if path else entry.name,
                        entry.stat(follow_symlinks=False),
                    )
                    for entry in os.scandir(self.root / path)
                ]
                pending += sorted(below, key=lambda row: os.fsencode(row[0]), reverse=True)

    def _header(self, path: str, status: os.stat_result) -> tarfile.TarInfo:
        info = tarfile.TarInfo(path)
        if stat.S_ISREG(status.st_mode):
            info.size = status.st_size
        elif stat.S_ISDIR(status.st_mode):
            info.type = tarfile.DIRTYPE
        elif stat.S_ISLNK(status.st_mode):
            info.type = tarfile.SYMTYPE
            info.linkname = os.readlink(self.root / path)  # noqa: PTH115 - as it is written
        else:
            raise BackupError(
                UNUSABLE,
                f"cannot back up {member_name(path)}: it is not a file, a folder or a link",
                "Remove it.",
            )
        info.mode = 0o777 if info.issym() else stat.S_IMODE(status.st_mode) & 0o700
        nanoseconds = min(status.st_mtime_ns, round(self.cut_time.timestamp() * 1000) * 1_000_000)
        info.mtime, fraction = divmod(max(nanoseconds, 0), 1_000_000_000)
        if fraction:
            info.pax_headers = {"mtime": f"{info.mtime}.{fraction:09d}"}
        return info

    def _body(self, path: str, size: int) -> Iterator[bytes]:
        name = member_name(path)
        if name in self._names:
            raise BackupError(UNUSABLE, f"cannot back up {name}: two files have this name")
        self._names.add(name)
        digest, remaining = hashlib.sha256(), size
        descriptor = os.open(self.root / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            while remaining and (chunk := os.read(descriptor, min(_BLOCK, remaining))):
                digest.update(chunk)
                remaining -= len(chunk)
                yield chunk
        finally:
            os.close(descriptor)
        if remaining:
            raise BackupError(UNUSABLE, f"cannot back up {name}: it became shorter meanwhile")
        yield bytes(-size % tarfile.BLOCKSIZE)
        self.members.append(SnapshotMember(path=name, size=size, sha256=digest.hexdigest()))
